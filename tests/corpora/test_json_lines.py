import gzip

import pytest

from elmo_plugin.corpora.json_lines import parse_object, read_objects


def write(tmp_path, text, name="a.jsonl"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_objects_come_with_their_places(tmp_path):
    path = write(tmp_path, '\ufeff{"a": 1}\r\n\n{"b": "x\u2028y"}')
    assert list(read_objects(path)) == [
        (f"{path}:1", {"a": 1}),
        (f"{path}:3", {"b": "x\u2028y"}),
    ]


def test_a_compressed_twin_is_read(tmp_path):
    with gzip.open(tmp_path / "a.jsonl.gz", "wt") as file:
        file.write('{"a": 1}\n')
    assert [found for _, found in read_objects(tmp_path / "a.jsonl")] == [{"a": 1}]


@pytest.mark.parametrize("line", ['{"a": 1', "[1]", "1", '{"a": 1} {"b": 2}', "a"])
def test_a_line_that_is_no_object_is_refused_by_its_number(tmp_path, line):
    path = write(tmp_path, '{"a": 1}\n' + line + "\n")
    objects = read_objects(path)
    next(objects)
    with pytest.raises(ValueError, match=r"a\.jsonl:2: expected a JSON object, found") as error:
        next(objects)
    assert line in str(error.value)


def test_half_of_a_character_is_refused_and_a_whole_one_read():
    assert parse_object('{"a": "\\ud83d\\ude00"}', "line 1") == {"a": "\U0001f600"}
    with pytest.raises(ValueError, match=r"line 1: .* found the lone surrogate \\ud83d"):
        parse_object('{"a": ["\\ud83d"]}', "line 1")


def test_a_line_may_begin_with_a_byte_order_mark():
    assert parse_object('\ufeff{"a": 1}', "line 1") == {"a": 1}


def test_an_object_that_is_too_deep_is_refused():
    with pytest.raises(ValueError, match="line 1: expected a JSON object"):
        parse_object('{"a": ' + "[" * 200_000, "line 1")


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match="the file is empty"):
        list(read_objects(write(tmp_path, "\n \n")))


def test_the_error_shows_what_a_line_should_be():
    with pytest.raises(ValueError, match=r"line 3: expected a JSON object like \{example\}, found"):
        parse_object("They play.", "line 3", "{example}")
