#!/usr/bin/env bash
# Trains, evaluates and predicts with what ships with the project: semantic roles with ELMo.
set -euo pipefail
cd "$(dirname "$0")/.."

allennlp() { "${VENV:-.venv}/bin/python" -m allennlp "$@"; }
experiment=fixtures/experiments/srl_elmo.jsonnet
test_corpus=fixtures/corpora/srl/test.gold_conll
sentences=fixtures/predict/srl.jsonl
output=demo-output

# The demonstration is the same for everyone, whatever corpora and biLM are set up.
unset ELMO_DATA ELMO_OPTIONS ELMO_WEIGHTS ELMO_GLOVE ELMO_TURIAN

rm -rf "$output"
mkdir "$output"
echo "Semantic role labelling with ELMo, on a tiny corpus"
echo "1/3 training $experiment"
allennlp train "$experiment" -s $output/model
echo "2/3 evaluating on $test_corpus"
allennlp evaluate $output/model/model.tar.gz "$test_corpus" --output-file $output/metrics.json
echo "3/3 predicting the sentences of $sentences"
allennlp predict $output/model/model.tar.gz "$sentences" --batch-size 32 \
    --output-file $output/predictions.jsonl --silent

"${VENV:-.venv}/bin/python" scripts/show_demo.py $output
cat <<END

The archive is $output/model/model.tar.gz, the log of training is $output/model/out.log; metrics and
predictions lie beside the model in $output.

What to type next:
  source ${VENV:-.venv}/bin/activate
  ELMO_DATA=/corpora allennlp train experiments/srl_elmo.jsonnet -s out/srl_elmo   # your own data
  ls experiments/ablations                    # each an experiment of three lines, trained like it
  allennlp elmo --help                        # ELMo vectors of any text, into a file
END
