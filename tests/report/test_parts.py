"""Members, places on the map, charts, and text that is safe on a page."""

import io
import json
from base64 import b64decode
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_cases import a_table, some_images
from PIL import Image

from neuralbayes.report.charts import hierarchy_chart, line_chart
from neuralbayes.report.map import MAX_DRAWN, MAX_TSNE, place
from neuralbayes.report.members import Members, cell_text
from neuralbayes.report.template import render, safe_json, visible


@given(st.text())
def test_any_text_is_safe_json_and_visible(text):
    source = safe_json({"text": text})
    assert json.loads(source)["text"] == visible(text)
    assert not set(source) & set("<>&\u2028\u2029")
    assert not set(visible(text)) & set("\x00\x1b\u202e\u2066\ufeff\u200f")


def test_bytes_of_file_names_and_emoji():
    assert visible("caf\udce9.png") == r"caf\xe9.png"
    assert visible("👩‍🚀 naïve") == "👩‍🚀 naïve"
    assert visible("a\tb\nc") == "a b c"


def test_templates_escape_every_value():
    frame = dict.fromkeys(("title", "policy", "version", "theme", "style", "script", "payload", "day"), "")
    section = SimpleNamespace(heading="<i>", sentence="a\u202eb", command="")
    html = render("story.html", **frame, sections=[(section, [])])
    assert "&lt;i&gt;" in html
    assert r"a\u202eb" in html


def test_cells_are_short_texts():
    cells = (1234.5678, float("inf"), np.float32(0.5), np.int64(10_000), "a\nb", "x" * 500)
    assert [cell_text(cell) for cell in cells][:-1] == ["1235", "inf", "0.5", "10000", "a b"]
    assert len(cell_text(cells[-1])) < 60


def test_the_columns_on_the_map_tell_most():
    members = Members(a_table())
    assert members.columns[0] in ("<b>mass</b>", "length", "city")
    assert members.cells([3], "id") == ["c003"]


def test_thumbnails_fit_into_their_budget():
    members = Members(some_images())
    small, large = (members.thumbnails(range(20), budget) for budget in (1, 10**6))
    assert set(small) == set(range(20))
    assert sum(map(len, small.values())) <= sum(map(len, large.values()))


def test_a_sheet_holds_each_image_in_its_cell():
    result = some_images()
    sheet = Members(result).sheet(list(range(80)), 10**6)
    with Image.open(io.BytesIO(b64decode(sheet.address.partition(",")[2]))) as picture:
        wall = np.asarray(picture.convert("RGB"), float)
    for i in range(80):
        top, left = sheet.cell * (i // sheet.columns), sheet.cell * (i % sheet.columns)
        shown = wall[top : top + sheet.height, left : left + sheet.width]
        assert abs(shown.mean() - result.points.images.read([i]).mean()) < 6


def test_two_directions_are_drawn_as_they_are_and_many_by_neighbourhoods():
    rng = np.random.default_rng(0)
    flat = place(rng.normal(size=(300, 2)) @ rng.normal(size=(2, 9)), np.arange(300), 300, "row")
    assert flat.axes[0].startswith("component 1")
    wide = rng.normal(size=(60, 20))
    assert place(wide, np.arange(60), 60, "text").caption.startswith("t-SNE of 60 texts")
    assert place(wide, np.arange(60), 60, "text", straight=True).caption == "Principal components of 60 texts."


@pytest.mark.parametrize("shape", [(1, 3), (5, 1), (4, 0), (6, 2)])
def test_few_points_and_dimensions_have_places(shape):
    found = place(np.ones(shape), np.arange(shape[0]), shape[0], "row")
    assert found.points.shape == (shape[0], 2)
    assert np.isfinite(found.points).all()


def test_an_outlier_leaves_room_for_the_others():
    points = np.random.default_rng(0).normal(size=(200, 2))
    points[7] = 1e6
    found = place(points, np.arange(200), 200, "row").points
    assert np.ptp(found, axis=0).max() < 20
    assert np.argmax(np.abs(found).sum(axis=1)) == 7


def test_wanted_rows_are_drawn():
    rows = np.arange(MAX_DRAWN + 2000)
    found = place(np.random.default_rng(0).normal(size=(len(rows), 2)), rows, 10**6, "row", wanted=[5, 5999])
    assert len(found.rows) == MAX_DRAWN > MAX_TSNE
    assert {5, 5999} <= set(found.rows.tolist())
    assert "4,000 of 1,000,000 rows" in found.caption


def test_a_hierarchy_has_a_leaf_for_each_cluster():
    linkage = np.array([[0, 1, 0.1, 2], [2, 3, 0.5, 2], [4, 5, 0.4, 4]], float)
    membership = np.eye(4)[:, [0, 1, 2, 3]]
    result = SimpleNamespace(names=list("abcd"), model=SimpleNamespace(hierarchy_=linkage, membership_=membership))
    tree = hierarchy_chart(result)
    assert sorted(number for number, _ in tree.leaves) == [0, 1, 2, 3]
    assert len(tree.paths) == 3
    assert hierarchy_chart(SimpleNamespace(names=["a"], model=SimpleNamespace())) is None


def test_states_of_a_cluster_are_one_leaf():
    linkage = np.array([[0, 1, 0.1, 2], [2, 3, 0.2, 2], [6, 7, 0.5, 4], [4, 8, 0.6, 5], [5, 9, 0.7, 6]], float)
    membership = np.eye(4)[[0, 0, 1, 1, 2, 3]]
    result = SimpleNamespace(names=list("abcd"), model=SimpleNamespace(hierarchy_=linkage, membership_=membership))
    assert sorted(hierarchy_chart(result).leaves) == [(0, "a"), (1, "b"), (2, "c"), (3, "d")]


def test_curves_lie_inside_their_frame():
    chart = line_chart("Loss", {"loss": ([1, 2, 3], [5.0, 4.0, 4.5])}, {"loss": 6.0})
    ((_, points),) = chart.curves
    places = np.array([[float(value) for value in point.split(",")] for point in points.split()])
    assert (places >= 0).all()
    assert (places <= [chart.width, chart.height]).all()
    assert chart.bounds[0][1] < places[:, 1].min()
    assert line_chart("Loss", {"loss": ([1], [5.0])}) is None
    assert line_chart("Loss", {"loss": ([1, 2], [np.nan, 5.0])}) is None
