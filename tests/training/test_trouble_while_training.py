"""Pictures that vanish while a run reads them."""

import pytest
from image_cases import bars
from PIL import Image

import neuralbayes as nb
from neuralbayes.data.sources import FilesSource
from neuralbayes.training import Callback

CONFIG = nb.PretrainConfig(encoder="tiny", batch_size=16, microbatch_size=16, epochs=2)


class MoveAway(Callback):
    def __init__(self, folder, away):
        self.folder, self.away = folder, away

    def on_step_end(self, state, metrics):
        if state.step == 2:
            self.folder.rename(self.away)


def test_a_folder_of_pictures_that_vanishes_is_named_and_the_run_goes_on_when_it_is_back(tmp_path):
    folder, away, run, unbroken = (tmp_path / name for name in ("pictures", "away", "run", "unbroken"))
    folder.mkdir()
    images, _ = bars(48)
    nb.pretrain(images, CONFIG, out=unbroken)
    for number, image in enumerate(images):
        Image.fromarray(image[..., 0]).save(folder / f"{number:02d}.png")
    streamed = FilesSource(sorted(folder.iterdir()), images.shape[1:])
    with pytest.raises(OSError, match=r"pictures/\d\d\.png could be read at the start .* restore the file"):
        nb.pretrain(streamed, CONFIG, out=run, callbacks=[MoveAway(folder, away)])
    assert [path.name[:14] for path in (run / "checkpoints").iterdir()] == ["step-000000002"]
    away.rename(folder)
    nb.pretrain(streamed, CONFIG, out=run)
    for name in ("encoder.safetensors", "metrics.jsonl"):
        assert (run / name).read_bytes() == (unbroken / name).read_bytes()
