import json
import os
import subprocess
import sys

import pytest

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.resumable_text import ResumableText

SETTINGS = {"unit": "bits"}


def opened(path, force=False, **changes):
    return ResumableText(path, {**SETTINGS, **changes}, force)


def test_a_file_appears_when_it_is_finished(tmp_path):
    path = tmp_path / "new" / "out.tsv"
    text = opened(path)
    text.commit("one\n", {"num_lines": 1})
    text.commit("two\n", {"num_lines": 2})
    assert not path.exists()
    text.finish()
    text.close()
    assert path.read_text() == "one\ntwo\n"
    assert [found.name for found in path.parent.iterdir()] == ["out.tsv"]


def test_work_continues_after_the_last_commit(tmp_path):
    path = tmp_path / "out.tsv"
    text = opened(path)
    text.commit("one\n", {"num_lines": 1})
    # What a kill leaves: lines without their progress.
    (tmp_path / "out.tsv.unfinished" / "lines").write_text("one\ntw")
    text.close()
    text = opened(path)
    assert text.progress == {"num_lines": 1}
    text.commit("two\n", {"num_lines": 2})
    text.finish()
    text.close()
    assert path.read_text() == "one\ntwo\n"


def test_other_settings_need_force(tmp_path):
    path = tmp_path / "out.tsv"
    text = opened(path)
    text.commit("one\n", {"num_lines": 1})
    text.close()
    with pytest.raises(ConfigurationError, match="other settings: unit bits, now nats. Repeat"):
        opened(path, unit="nats")
    text = opened(path, force=True, unit="nats")
    assert text.progress == {}
    text.commit("new\n", {"num_lines": 1})
    text.finish()
    text.close()
    assert path.read_text() == "new\n"


def test_what_is_finished_is_replaced_only_by_force(tmp_path):
    path = tmp_path / "out.tsv"
    path.write_text("old\n")
    with pytest.raises(ConfigurationError, match="out.tsv exists. Give --force"):
        opened(path)
    text = opened(path, force=True)
    text.commit("new\n", {})
    assert path.read_text() == "old\n"
    text.finish()
    text.close()
    assert path.read_text() == "new\n"


def test_nothing_is_left_of_what_was_not_begun(tmp_path):
    opened(tmp_path / "out.tsv").close()
    assert list(tmp_path.iterdir()) == []


def test_a_kill_in_the_first_commit_leaves_nothing_that_stays(tmp_path):
    text = opened(tmp_path / "out.tsv")
    # What it leaves: a progress file that is not complete.
    (text.folder / "progress.json.7.unfinished").write_text('{"settings"')
    text.close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_created_is_named(tmp_path):
    path = tmp_path / "file" / "out.tsv"
    (tmp_path / "file").write_text("")
    message = f"{path} cannot be written: {tmp_path / 'file'} is not a folder"
    with pytest.raises(ConfigurationError, match=message):
        opened(path)


def test_a_kill_between_the_end_and_its_cleaning_leaves_the_file(tmp_path):
    path = tmp_path / "out.tsv"
    text = opened(path)
    text.commit("one\n", {"num_lines": 1})
    (path.parent / "out.tsv.unfinished" / "lines").rename(path)
    text.close()
    with pytest.raises(ConfigurationError, match="exists"):
        opened(path)
    text = opened(path, force=True)
    assert text.progress == {}
    text.close()


@pytest.mark.parametrize(
    "name, content",
    [
        ("progress.json", '{"settings"'),
        ("progress.json", '{"progress": {}, "num_bytes": 1}'),
        ("progress.json", '{"settings": {"unit": "bits"}, "progress": {}, "num_bytes": -1}'),
        ("progress.json", "[]"),
        ("lines", "o"),
    ],
)
def test_damaged_work_is_named(tmp_path, name, content):
    text = opened(tmp_path / "out.tsv")
    text.commit("one\n", {"num_lines": 1})
    text.close()
    (tmp_path / "out.tsv.unfinished" / name).write_text(content)
    with pytest.raises(ConfigurationError, match="out.tsv.unfinished is damaged. Delete it and"):
        opened(tmp_path / "out.tsv")


def test_a_second_process_is_refused(tmp_path):
    text = opened(tmp_path / "out.tsv")
    program = (
        "import sys; from pathlib import Path\n"
        "from elmo_plugin.util.resumable_text import ResumableText\n"
        f"ResumableText(Path(sys.argv[1]), {json.dumps(SETTINGS)}, False)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "out.tsv")], capture_output=True, text=True
    )
    assert done.returncode and "being written by another process" in done.stderr
    text.close()


def test_a_pipe_is_no_output_and_stays(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match="pipe is a pipe or device; expected the name"):
        opened(tmp_path / "pipe", force=True)
    assert (tmp_path / "pipe").is_fifo() and os.listdir(tmp_path) == ["pipe"]


def test_a_link_stays_and_the_file_that_it_names_is_written(tmp_path):
    (tmp_path / "link").symlink_to("other/out.tsv")
    text = opened(tmp_path / "link")
    text.commit("one\n", {})
    assert text.folder == tmp_path / "other" / "out.tsv.unfinished"
    text.finish()
    text.close()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "other" / "out.tsv").read_text() == "one\n"
    assert os.listdir(tmp_path / "other") == ["out.tsv"]


def test_a_folder_is_no_output(tmp_path):
    with pytest.raises(ConfigurationError, match="is a folder; expected the name of a file"):
        opened(tmp_path)
