from elmo_plugin.commands.tables import latex_table


def test_what_latex_would_take_for_a_command_is_escaped():
    cells = [["50 % & more", "1 ± 2"], [r"^\\<x>~{}", "λ #$"], ["1-2", "-0.50 to -0.25"]]
    table = latex_table(["a_b", "B³"], cells, 1)
    head, *rows = [line for line in table.splitlines() if line.endswith(r"\\")]
    assert head == r"a\_b & B$^3$ \\"
    assert rows == [
        r"50 \% \& more & 1 $\pm$ 2 \\",
        r"\textasciicircum{}\textbackslash{}\textbackslash{}\textless{}x\textgreater{}"
        r"\textasciitilde{}\{\} & $\lambda$ \#\$ \\",
        r"1-2 & $-$0.50 to $-$0.25 \\",
    ]
