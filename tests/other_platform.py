"""
Shows the package a platform like Windows: `python -m pytest -p tests.other_platform tests/bilm`.

The modules of elmo_plugin, here and in processes that a test starts, find no names that only POSIX
or Linux has, no /proc and /dev, and `os.name` is `nt`. For them, files that this process has open
cannot be removed, renamed or replaced, only files that are open for writing can be synced, text
files need an encoding and end their lines with CRLF, and pipes are in a code page. Processes start
by `spawn`. Tests and libraries see the real system.
"""

import atexit
import builtins
import ctypes
import errno
import fcntl
import io
import multiprocessing
import os
import signal
import sys
import tempfile
from pathlib import Path
from types import ModuleType

_PACKAGE = "elmo_plugin"
_MISSING_MODULES = "fcntl grp posix pty pwd resource syslog termios tty".split()
_MISSING = (
    "chown fchmod fork forkpty geteuid getgid getpgid getuid killpg mkfifo nice posix_fadvise "
    "posix_fallocate posix_spawn pread pwrite register_at_fork sched_getaffinity sched_setaffinity "
    "sendfile setsid statvfs sysconf uname wait4 waitid "
    "SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2 "
    "pthread_sigmask set_wakeup_fd setitimer sigwait"
).split()
_MISSING_FILES = ("/dev/", "/proc/")


class _Library(ctypes.CDLL):
    def __init__(self, name, *arguments, **settings):
        if name is None:
            raise TypeError("on Windows a library needs a name")
        super().__init__(name, *arguments, **settings)


def _kill(process, signal_number):
    raise AssertionError("on Windows `os.kill` ends a process, whatever the signal")


class _Module(ModuleType):
    """A module as on Windows. What a test replaces in the real one is replaced here, too."""

    def __init__(self, real, **changes):
        super().__init__(real.__name__)
        self.__dict__.update(_real=real, **changes)

    def __getattr__(self, name):
        if name in _MISSING:
            raise AttributeError(f"on Windows {self.__name__} has no {name}")
        return getattr(self._real, name)

    def __setattr__(self, name, value):
        setattr(self._real, name, value)


_MODULES = {
    "ctypes": _Module(ctypes, CDLL=_Library),
    "os": _Module(os, name="nt", kill=_kill),
    "signal": _Module(signal),
    "sys": _Module(sys, platform="win32"),
}


def _import(name, globals=None, locals=None, fromlist=(), level=0, real=builtins.__import__):
    if level == 0 and globals and str(globals.get("__name__")).startswith(_PACKAGE):
        if name in _MISSING_MODULES:
            raise ModuleNotFoundError(f"on Windows there is no module {name}")
        if name in _MODULES:
            return _MODULES[name]
    return real(name, globals, locals, fromlist, level)


def _is_for_package():
    """Whether the package has called the function below, itself or by the standard library."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name != __name__ and name.partition(".")[0] not in sys.stdlib_module_names:
            return name.startswith(_PACKAGE)
        frame = frame.f_back
    return False


def _is_missing(path):
    is_path = isinstance(path, (str, os.PathLike))
    return is_path and os.fspath(path).startswith(_MISSING_FILES) and _is_for_package()


def _open(
    file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, *rest, **settings
):
    if _is_missing(file):
        raise FileNotFoundError(errno.ENOENT, "there is no such file on Windows", str(file))
    if "b" not in mode and _is_for_package():
        assert encoding not in (None, "locale"), f"{file} is opened in an unknown encoding"
        if newline is None and not set(mode).isdisjoint("wax+"):
            newline = "\r\n"
    return _real_open(file, mode, buffering, encoding, errors, newline, *rest, **settings)


def _stat(path, **settings):
    if _is_missing(path):
        raise FileNotFoundError(errno.ENOENT, "there is no such file on Windows", str(path))
    return _real_stat(path, **settings)


def _fsync(file):
    if fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY and _is_for_package():
        raise OSError(errno.EBADF, "Windows syncs only files that are open for writing")
    return _real_fsync(file)


def _refuse_open_files(path, dir_fd):
    folder = os.path.dirname(path) if dir_fd is None else os.readlink(f"/proc/self/fd/{dir_fd}")
    path = os.path.join(os.path.realpath(folder), os.path.basename(path))
    descriptors = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    used = [os.readlink(each) for each in descriptors if os.path.lexists(each)]
    with _real_open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        used += [line.rstrip("\n").split(maxsplit=5)[-1] for line in maps if "/" in line]
    for each in used:
        if each == path or (each.startswith(f"{path}/") and not os.path.isdir(each)):
            raise PermissionError(errno.EACCES, "Windows does not change an open file", each)


def _unless_open(real):
    def change(*paths, dir_fd=None, src_dir_fd=None, dst_dir_fd=None):
        if _is_for_package():
            for path in paths:
                _refuse_open_files(os.fspath(path), dir_fd)
        return real(*paths, **({} if dir_fd is None else {"dir_fd": dir_fd}))

    return change


_real_open, _real_stat, _real_fsync = builtins.open, os.stat, os.fsync
builtins.__import__ = _import
builtins.open = io.open = _open
os.stat, os.fsync = _stat, _fsync
for _name in ("remove", "rename", "replace", "unlink"):
    setattr(os, _name, _unless_open(getattr(os, _name)))
multiprocessing.set_start_method("spawn", force=True)

if __name__ != "sitecustomize":
    assert _PACKAGE not in sys.modules
    _folder = tempfile.TemporaryDirectory()
    atexit.register(_folder.cleanup)
    # Python imports it at the start of every process.
    Path(_folder.name, "sitecustomize.py").symlink_to(__file__)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [_folder.name, *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    os.environ["PYTHONIOENCODING"] = "cp1252"
