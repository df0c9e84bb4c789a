"""The meaning of `--search` and `--set`, and their errors."""

import re

import pytest

from neuralbayes.features.pretraining import PRESETS
from neuralbayes.sweeps.space import Choice, Range, parse

LAPTOP = PRESETS["laptop"]


def test_ranges_and_choices_have_the_types_of_the_settings():
    words = ["alpha=0:10", "learning-rate=1e-4:1e-1:log", "batch=20:200:log", "beta=0,0.5,2", "encoder=tiny,small"]
    space, config = parse(words, [], LAPTOP)
    assert space == {
        "alpha": Range(0.0, 10.0),
        "learning_rate": Range(1e-4, 1e-1, log=True),
        "batch_size": Range(20, 200, log=True, whole=True),
        "beta": Choice({"0": 0.0, "0.5": 0.5, "2": 2.0}),
        "encoder": Choice({"tiny": "tiny", "small": "small"}),
    }
    assert config == LAPTOP


def test_every_type_has_its_words():
    words = ["scales=1,1+2", "augment=true,false", "version=1,2", "patience=3,none", "marginal=exact,running"]
    space, _ = parse(words, [], LAPTOP)
    assert [list(choice.values.values()) for choice in space.values()] == [
        [(1,), (1, 2)],
        [True, False],
        [1, 2],
        [3, None],
        ["exact", "running"],
    ]
    _, config = parse(["alpha=0:1"], ["scales=1+2+4", "augment=true", "epochs=3", "beta=0", "precision=auto"], LAPTOP)
    assert (config.scales, config.augment, config.epochs, config.beta) == ((1, 2, 4), True, 3, 0.0)
    assert (config.precision, config.learning_rate) == ("auto", LAPTOP.learning_rate)


def test_a_number_that_was_drawn_is_one_that_a_person_can_type():
    assert Range(0.0, 10.0).value(3.745401188473625) == 3.745
    assert Range(1.23446, 2.0).value(1.234461) == 1.23446  # not below the range
    assert Range(1, 50, whole=True).value(7) == 7


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("alpha", "`search` must be NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=A,B, got 'alpha'"),
        ("alpha=", "`search` must be NAME=LOW:HIGH"),
        ("alfa=0:1", "`search` must name one of alpha, augment, batch_size,"),
        ("seed=0:9", "got 'seed'"),
        ("alpha=1", "`search` must be a range or at least two choices, got alpha=1; `set` fixes a setting"),
        ("alpha=2:1", "a range must rise, got alpha=2:1"),
        ("alpha=0:1:log", "a range must rise from above 0, got alpha=0:1:log"),
        ("alpha=0:1:ln", "a range must be LOW:HIGH or LOW:HIGH:log, got alpha=0:1:ln"),
        ("alpha=0:1:2:3", "a range must be LOW:HIGH or LOW:HIGH:log"),
        ("alpha=a:b", "`alpha` must be a number, got 'a'"),
        ("alpha=0:inf", "`alpha` must be a number, got 'inf'"),
        ("alpha=1,,2", "`alpha` must be a number, got ''"),
        ("epochs=1.5:3", "`epochs` must be a whole number, got '1.5'"),
        ("epochs=0:3", "`epochs` must be at least 1, got 0"),
        ("encoder=1:2", "`encoder` must be searched by choices, such as encoder=A,B, got '1:2'"),
        ("encoder=tiny,big", "`encoder` must be one of paper, small, tiny, got 'big'"),
        ("version=1,3", "`version` must be one of 1, 2, got '3'"),
        ("augment=yes,no", "`augment` must be true or false, got 'yes'"),
        ("scales=1,1-2", "`scales` must be whole numbers with + between them, such as 1+2, got '1-2'"),
        ("patience=1,x", "`patience` must be a whole number or none, got 'x'"),
        ("precision=float32,bfloat16", "`precision` must be 'float32' or 'auto' if beta is not 0"),
    ],
)
def test_what_is_no_search_is_refused(search, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse([search], [], LAPTOP)


@pytest.mark.parametrize(
    ("search", "settings", "message"),
    [
        ([], [], "`search` must name at least one setting, such as alpha=0:10"),
        (["alpha=0:1", "alpha=2:3"], [], "`search` must name alpha once, got 'alpha=2:3' too"),
        (["batch=10:20", "batch_size=20:30"], [], "`search` must name batch_size once"),
        (["alpha=0:1"], ["alpha=3"], "`search` and `set` must name different settings, got alpha in both"),
        (["alpha=0:1"], ["beta"], "`set` must be NAME=VALUE, got 'beta'"),
        (["alpha=0:1"], ["beta=low"], "`beta` must be a number, got 'low'"),
        (["alpha=0:1"], ["epochs=0"], "`epochs` must be at least 1, got 0"),
    ],
)
def test_what_does_not_go_together_is_refused(search, settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse(search, settings, LAPTOP)
