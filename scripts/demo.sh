#!/usr/bin/env bash
# Trains, evaluates and predicts with what ships with the project: semantic roles with ELMo.
set -euo pipefail
cd "$(dirname "$0")/.."

allennlp() { "${VENV:-.venv}/bin/python" -m allennlp "$@"; }
show() { "${VENV:-.venv}/bin/python" scripts/show_demo.py "$1" $output; }
experiment=fixtures/experiments/srl_elmo.jsonnet
test_corpus=fixtures/corpora/srl/test.gold_conll
sentences=fixtures/predict/srl.jsonl
output=demo-output

# Lines with the metrics of each epoch take the place of progress bars.
export TQDM_DISABLE=1
# The demonstration must not depend on the corpora and the biLM of the user.
unset ELMO_DATA ELMO_OPTIONS ELMO_WEIGHTS ELMO_GLOVE ELMO_TURIAN

rm -rf "$output"
mkdir "$output"
echo "Named entities, by a trained model that comes with the project"
echo '{"sentence": "Ada Lovelace met Charles Babbage in London."}' > $output/line.jsonl
allennlp predict pretrained/tasks/ner/model.tar.gz $output/line.jsonl --silent \
    --output-file $output/entities.jsonl
"${VENV:-.venv}/bin/python" -c '
import json, sys
for entity in json.load(open(sys.argv[1]))["entities"]:
    print("  {text}: {type}".format(**entity))' $output/entities.jsonl

echo "Semantic role labelling with ELMo, on a tiny corpus"
echo "1/3 training $experiment"
allennlp train "$experiment" -s $output/model | show epochs
echo "2/3 evaluating on $test_corpus"
allennlp evaluate $output/model/model.tar.gz "$test_corpus" --output-file $output/metrics.json
echo "3/3 predicting the sentences of $sentences"
allennlp predict $output/model/model.tar.gz "$sentences" --batch-size 32 \
    --output-file $output/predictions.jsonl --silent

show results
cat <<END

The archive is $output/model/model.tar.gz, the log of training is $output/model/out.log; metrics and
predictions are beside the model in $output.

What to type next:
  source ${VENV:-.venv}/bin/activate
  elmo serve          # the trained models on a page: http://127.0.0.1:8000/
  elmo train classifier reviews.csv -s out    # your own texts and labels: docs/own-texts.md
  ELMO_DATA=/corpora allennlp train experiments/srl_elmo.jsonnet -s out/srl_elmo   # the paper's tasks
  ls experiments/ablations                    # experiments of a few lines, trained in the same way
  elmo embed --help                           # ELMo vectors of any text, into a file
END
