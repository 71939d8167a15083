#!/usr/bin/env bash
# Every command of the core, where only the wheel is installed, for a user who has no home folder:
#
#     python -m venv /tmp/env && /tmp/env/bin/pip install dist/elmo_plugin-*.whl
#     scripts/try_wheel.sh /tmp/env/bin
#
# Stops at the first that fails. As root, it tries the same as the user nobody.
set -euo pipefail
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
user=()
if [ "$(id -u)" = 0 ]; then
    chmod 777 "$work"
    user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
cd "$work"
mapfile -t ours < <(env | sed -n 's/^\(ELMO_[A-Z_]*\|XDG_CACHE_HOME\|PYTHONPATH\)=.*/--unset=\1/p')

try() {
    echo "== ${*##*/}"
    "${user[@]}" env "${ours[@]}" HOME=/nonexistent TMPDIR="$work" "$@"
}

printf 'They play chess .\nThe play began .\n' > text.txt
tagger=$("$bin/python" -I -c 'from elmo_plugin.util.files import *; print(find_archive(TAGGER))')
try "$bin/elmo" doctor
try "$bin/elmo" models > models.txt
try "$bin/elmo" embed text.txt out.hdf5 --all
try "$bin/elmo" embed text.txt out.safetensors --top
try "$bin/elmo" score text.txt
try "$bin/elmo" vocabulary text.txt words.txt
try "$bin/elmo" neighbours build text.txt index
try "$bin/elmo" neighbours query index 'They [play] chess .'
try "$bin/elmo" experiments mine
try "$bin/elmo" export "$tagger" exported
try "$bin/elmo" pack "$tagger" packed.tar.gz
try "$bin/elmo" layer-weights "$tagger"
try "$bin/python" -c '
from elmo_plugin import Elmo, embed_sentences, load_bilm

sentences = [["They", "play", "chess"], ["The", "play", "began", "."]]
for layers in embed_sentences(load_bilm(), sentences):
    print(tuple(layers.shape))
elmo = Elmo(trainable=True)
elmo(elmo.bilm.characters.batch_ids(sentences)).sum().backward()
print(all(weight.grad is not None for weight in elmo.mixes.parameters()))
'
# What needs AllenNLP says so.
! try "$bin/elmo" predict ner "Ada" 2> message.txt
grep -q "needs AllenNLP" message.txt
echo "Every command of the core works."
