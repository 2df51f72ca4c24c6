from distill.core.report import markdown_table


def test_a_table_keeps_its_columns_whatever_is_in_it():
    assert markdown_table([["of", "n"], ["a|b\nc", 12]], right=[1]).splitlines() == [
        "| of | n |",
        "| --- | ---: |",
        "| a\\|b c | 12 |",
    ]
