"""One table for all: as text it lines up, as HTML it is escaped."""

import pytest

from course_lib.show import Cell, Table

ROWS = (("a <b>", "7"), ("second", "1,234"))


def test_text_lines_up_and_numbers_stand_to_the_right():
    table = Table(("name", "bytes"), ROWS, numbers=("bytes",))
    assert str(table).splitlines() == [
        "name    bytes",
        "------  -----",
        "a <b>       7",
        "second  1,234",
    ]
    assert repr(table) == str(table)


@pytest.mark.parametrize(("rule", "second"), [("line", "-------------"), ("none", "a <b>   7")])
def test_the_line_below_the_heads_is_chosen(rule, second):
    assert str(Table(("name", "bytes"), ROWS, rule=rule)).splitlines()[1] == second


def test_a_caption_stands_above_both_faces():
    table = Table(("name", "bytes"), ROWS, caption="sizes & more")
    assert str(table).startswith("sizes & more\nname")
    assert "<caption" in table._repr_html_()
    assert "sizes &amp; more</caption>" in table._repr_html_()


def test_long_cells_are_cut_in_text_alone():
    table = Table(("name",), (("x" * 30,),), longest=10)
    assert str(table).splitlines()[-1] == "x" * 9 + "…"
    assert "x" * 30 in table._repr_html_()


def test_the_last_column_goes_on_in_the_next_line():
    table = Table(("name", "why"), (("first", "one two three"), ("second", "")), wrapped=8)
    assert str(table).splitlines() == ["name    why", "------  ---", "first   one two", "        three", "second"]


def test_plain_strings_are_escaped_and_markup_is_kept():
    page = Table(("<i>", "b"), (("a <b>", Cell("fine", html="<em>fine</em>")),))._repr_html_()
    assert "&lt;i&gt;" in page
    assert "a &lt;b&gt;" in page
    assert "<em>fine</em>" in page
    assert "<b>" not in page


def test_a_cell_with_classes_carries_them_instead_of_a_style():
    page = Table(("a",), ((Cell("1", classes='num"'),),))._repr_html_()
    assert '<td class="num&quot;">1</td>' in page


def test_a_cell_shows_its_text_where_there_is_no_markup():
    table = Table(("a",), ((Cell("fine", html="<em>x</em>"),),))
    assert str(table).splitlines()[-1] == "fine"


def test_code_cells_are_code_and_empty_ones_stay_empty():
    page = Table(("a", "b"), (("x < y", ""),), code=True)._repr_html_()
    assert ">x &lt; y</code>" in page
    assert page.count("<code") == 1
    assert "<code" not in Table(("a",), (("x",),))._repr_html_()
