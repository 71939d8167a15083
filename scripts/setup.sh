#!/usr/bin/env bash
# Makes the virtual environment $VENV with $PYTHON and installs what the project needs.
# If it is called again, it only installs what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

chosen=${PYTHON:-}
python=${chosen:-python3}
venv=${VENV:-.venv}

fail() {
    echo "set-up: $*" >&2
    exit 1
}

version_of() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true
}

check_interpreter() {
    local version
    version=$(version_of "$python")
    case "$version" in
        3.11 | 3.12 | 3.13 | 3.14) ;;
        "") fail "'$python' does not run. Install Python 3.11, 3.12, 3.13 or 3.14, or name one:" \
            "PYTHON=python3.12 make test" ;;
        *) fail "'$python' is Python $version, and 3.11, 3.12, 3.13 or 3.14 is needed." \
            "Name one: PYTHON=python3.12 make test" ;;
    esac
    "$python" -c 'import ensurepip, venv' 2>/dev/null || fail "'$python' lacks the venv module." \
        "On Debian and Ubuntu: apt-get install python$version-venv"
}

make_environment() {
    local present
    present=$(version_of "$venv/bin/python")
    # An environment of another version is kept unless the caller names an interpreter.
    if [ -n "$present" ] && [ -z "$chosen" ]; then
        python="$venv/bin/python"
    fi
    check_interpreter
    if [ "$present" != "$(version_of "$python")" ]; then
        [ -z "$present" ] || echo "set-up: $venv holds Python $present; creating it anew"
        "$python" -m venv --clear "$venv"
    elif ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        "$python" -m venv "$venv"
    fi
}

install() {
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-warn-conflicts "$@" ||
        fail "pip could not install. For its full output: $venv/bin/python -m pip install $*" \
            "Fix the cause that it shows, and call make again."
}

make_environment
echo "set-up: installing into $venv (about 3 minutes and 7.6 GB the first time)"
install -c constraints.txt \
    -e '.[allennlp,analysis,ray,parquet,onnx,docs,serve,sentence-transformers,dev]'
install --no-deps allennlp==2.10.1
echo "set-up: done"
