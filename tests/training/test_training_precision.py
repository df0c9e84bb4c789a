"""bfloat16 is never tried in this process: a processor without it would kill the tests."""

import sys
from concurrent.futures.process import BrokenProcessPool
from typing import ClassVar

import pytest
import torch
from process_cases import in_child
from torch import nn

import neuralbayes as nb
from neuralbayes.training import precision
from neuralbayes.training.precision import InBfloat16, Trial, choose_precision, measure, try_bfloat16


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("wanted", "trial", "chosen"),
    [
        ("auto", Trial(1.5), "bfloat16"),
        ("auto", Trial(1.05), "float32"),
        ("auto", Trial(0.4), "float32"),
        ("auto", Trial(None, "SIGILL"), "float32"),
        ("bfloat16", Trial(0.4), "bfloat16"),
    ],
)
def test_auto_takes_bfloat16_where_it_works_and_is_faster(monkeypatch, wanted, trial, chosen):
    monkeypatch.setattr(precision, "try_bfloat16", lambda: trial)
    assert choose_precision(wanted) == chosen


def test_float32_needs_no_trial(monkeypatch):
    monkeypatch.setattr(precision, "try_bfloat16", None)
    assert choose_precision("float32") == "float32"


def test_bfloat16_that_does_not_work_is_refused(monkeypatch):
    monkeypatch.setattr(precision, "try_bfloat16", lambda: Trial(None, "a test of it ended by SIGILL"))
    with pytest.raises(ValueError, match=r"`precision` must be 'float32' or 'auto' on this machine, got .* SIGILL"):
        choose_precision("bfloat16")


@pytest.mark.skipif(sys.platform == "win32", reason="the programs are shell scripts")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kill -ILL $$", "a test of it ended by SIGILL"),
        ("echo 'Traceback' >&2; echo 'RuntimeError: no bfloat16' >&2; exit 1", "RuntimeError: no bfloat16"),
        ("exit 3", "a test of it ended with code 3"),
        ("exec sleep 60", "a test of it took more than 0 s"),
    ],
)
def test_a_child_process_that_fails_takes_nothing_with_it(tmp_path, monkeypatch, text, problem):
    monkeypatch.setattr(precision.sys, "executable", script(tmp_path / "python", text))
    monkeypatch.setattr(precision, "PATIENCE", 0.3 if "sleep" in text else 30.0)
    assert try_bfloat16.__wrapped__() == Trial(None, problem)


@pytest.mark.skipif(sys.platform == "win32", reason="the program is a shell script")
def test_it_is_tried_once(tmp_path, monkeypatch):
    monkeypatch.setattr(precision.sys, "executable", script(tmp_path / "python", f"echo x >> {tmp_path}/calls; echo 2"))
    try_bfloat16.cache_clear()
    try:
        assert try_bfloat16() == try_bfloat16() == Trial(2.0)
        assert (tmp_path / "calls").read_text() == "x\n"
    finally:
        try_bfloat16.cache_clear()


class Watched(nb.MIM):
    seen: ClassVar = set()

    def sample_term(self, p_zx, p_z):
        self.seen |= {p_zx.dtype, p_z.dtype}
        return super().sample_term(p_zx, p_z)


def gradients_of_both():
    """Types of outputs and in the objective, p(z), losses and gradients, of a network and of its bfloat16 version."""
    assert measure(1) > 0
    torch.manual_seed(0)
    layer = nn.Linear(30, 1000)
    inner, priors, losses, gradients = [], [], [], []
    layer.register_forward_hook(lambda module, inputs, output: inner.append(output.dtype))
    x = torch.randn(300, 30)
    for network in (layer, InBfloat16(layer)):
        layer.zero_grad()
        losses.append(
            float(
                nb.backward(
                    Watched(),
                    network,
                    x,
                    microbatch_size=100,
                    monitor=lambda posteriors: priors.append(posteriors[0].mean(dim=0)),
                )
            )
        )
        gradients.append(layer.weight.grad.flatten().clone())
    mass = [float(p.sum()) for p in priors]
    likeness = float(torch.cosine_similarity(*gradients, dim=0))
    return set(inner), Watched.seen, mass, losses, gradients[1].dtype, likeness


def test_the_objective_is_computed_in_float32_of_a_network_in_bfloat16():
    try:
        inner, seen, mass, losses, dtype, likeness = in_child(gradients_of_both)
    except BrokenProcessPool:
        pytest.skip("bfloat16 does not work on this machine")
    assert inner == {torch.float32, torch.bfloat16}
    assert seen == {torch.float32}
    assert mass == pytest.approx([1.0] * len(mass), abs=1e-5)
    assert dtype == torch.float32
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert likeness > 0.99
