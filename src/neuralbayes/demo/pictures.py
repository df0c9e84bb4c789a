"""Two pictures of the results of the demo, for slides and the documentation."""

from __future__ import annotations

from pathlib import Path

from neuralbayes.demo.digits import DigitsResult
from neuralbayes.demo.manifolds import ManifoldResult
from neuralbayes.demo.result import DemoResult
from neuralbayes.plot.style import save_picture
from neuralbayes.report.digits import draw_digits
from neuralbayes.report.manifolds import Panel, draw_manifolds


def write_pictures(result: DemoResult, out: Path) -> dict[str, Path]:
    """Write manifolds.png and digits.png into the folder `out`."""
    digits = result.digits
    pictures = {
        "manifolds": draw_manifolds([panel(one) for one in result.manifolds]),
        "digits": draw_digits(
            information=information(digits),
            bounds=[layer.bound for layer in digits.layers],
            accuracy={probe.features: probe.accuracy for probe in digits.probes},
            members=[(f"state {s.state}", s.images, s.ratio) for s in digits.states],
        ),
    }
    files = {name: out / f"{name}.png" for name in pictures}
    for name, figure in pictures.items():
        save_picture(figure, files[name])
    return files


def panel(result: ManifoldResult) -> Panel:
    """A set with its clusters and its certificate."""
    return Panel(
        title=result.name,
        caption=f"{'certified' if result.certified else 'refused'}: {result.separation_percent:.1f}",
        certified=result.certified,
        points=result.points,
        labels=result.labels,
        extent=result.extent,
        decision_map=result.decision_map,
    )


def information(digits: DigitsResult) -> dict[str, list[float]]:
    """The curve of each layer, by a name with its number of states."""
    return {f"{layer.name}, {layer.n_states} states": layer.curve for layer in digits.layers}
