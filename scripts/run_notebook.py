"""
Runs the code cells of a notebook in order, without Jupyter, and keeps what they show:

    python scripts/run_notebook.py examples/raw_text_to_vectors.ipynb

A cell is Python, whose last expression is shown, or begins with `%%bash` or `%%writefile NAME`.
Standard error is not kept, and paths in the working folder or the checkout become relative. The
error of a cell ends the run, and the notebook stays as it was. A digest of the code cells in the
notebook's metadata says of which cells the outputs are.
"""

import argparse
import ast
import hashlib
import json
import subprocess
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, Dict, List, Optional

PROJECT = Path(__file__).resolve().parent.parent


def code_cells(notebook: Dict[str, Any]) -> List[Dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def digest(notebook: Dict[str, Any]) -> str:
    """The SHA-256 of the sources of the code cells."""
    sources = json.dumps(["".join(cell["source"]) for cell in code_cells(notebook)])
    return hashlib.sha256(sources.encode()).hexdigest()


def run(notebook: Dict[str, Any]) -> None:
    """Replaces the outputs of a notebook."""
    namespace: Dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code_cells(notebook), start=1):
        with redirect_stdout(StringIO()) as printed:
            value = run_cell("".join(cell["source"]), f"<cell {number}>", namespace)
        cell["execution_count"], cell["outputs"] = number, []
        if printed.getvalue():
            text = kept(printed.getvalue())
            cell["outputs"].append({"name": "stdout", "output_type": "stream", "text": text})
        if value is not None:
            result = {"output_type": "execute_result", "execution_count": number, "metadata": {}}
            cell["outputs"].append({**result, "data": shown(value)})
    notebook["metadata"]["outputs_of"] = digest(notebook)


def run_cell(source: str, name: str, namespace: Dict[str, Any]) -> Optional[Any]:
    """The value of the last expression; `None` if the cell ends in something else."""
    first, _, rest = source.partition("\n")
    if first == "%%bash":
        command = ["bash", "-euo", "pipefail", "-c", rest]
        print(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout, end="")
        return None
    if first.startswith("%%writefile "):
        path = Path(first.removeprefix("%%writefile "))
        path.write_text(f"{rest}\n", encoding="utf-8")
        print("Writing", path)
        return None
    body = ast.parse(source, name).body
    last = [body.pop().value] if isinstance(body[-1], ast.Expr) else []
    exec(compile(ast.Module(body, []), name, "exec"), namespace)
    return eval(compile(ast.Expression(*last), name, "eval"), namespace) if last else None


def shown(value: Any) -> Dict[str, List[str]]:
    """What a notebook shows of a value, by MIME type."""
    data = {"text/plain": repr(value)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_()
    return {kind: kept(text) for kind, text in data.items()}


def kept(text: str) -> List[str]:
    for folder in (Path.cwd(), PROJECT):
        text = text.replace(f"{folder}/", "")
    return text.splitlines(keepends=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs a notebook and keeps what it shows.")
    parser.add_argument("notebook", metavar="NOTEBOOK", type=Path)
    parser.add_argument("--output", metavar="OUT", type=Path, help="default: NOTEBOOK")
    args = parser.parse_args()
    # Absolute, because a cell may change the working folder.
    out = (args.output or args.notebook).resolve()
    notebook = json.loads(args.notebook.read_text(encoding="utf-8"))
    run(notebook)
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    out.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
