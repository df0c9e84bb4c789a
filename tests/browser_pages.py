"""Helpers for tests of pages in a browser."""


def part(page, name, side=0):
    return page.locator(f'.explorer[data-side="{side}"] [data-part="{name}"]')


def text(page, name, side=0):
    return part(page, name, side).inner_text()


def heading(page, side=0):
    return part(page, "members", side).locator("h4").inner_text().strip()


def drawing(page, name, side=0):
    """The pixels of a canvas, as text."""
    return part(page, name, side).evaluate("canvas => canvas.toDataURL()")


def a_point(page, side=0):
    """Find a point on the map like a reader does: where the tip appears."""
    canvas = part(page, "map", side)
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    for i in range(20, 380, 6):
        for j in range(60, 420, 24):
            x, y = box["x"] + j * box["width"] / 480, box["y"] + i * box["height"] / 400
            page.mouse.move(x, y)
            if part(page, "tip", side).is_visible():
                return x, y
    raise AssertionError("no point on the map")
