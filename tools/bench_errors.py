"""The tables of `laconic bench error` for docs/error-theory.md."""

from stacking import table

# Dense, of one sign and without equal values: what the model is made for. And the number of ranks at which fields are compared.
DENSE = "weather_wrf_T"
RANKS = 8


def dense_of(result):
    fields = list(dict.fromkeys(r["field"] for r in result["per_field"]))
    return DENSE if DENSE in fields else fields[0]


def ranks_of(result):
    return max(r["ranks"] for r in result["rows"] if r["ranks"] <= RANKS)


def text_of(result):
    """One dense field with every operation, then every field with sums. In brackets what our model expects."""
    head = ["op", "mode", "ranks", "bias (ours)", "sigma (ours)", "papers' sigma", "rms", "99 %", "largest (certain)",
            "in papers' 95.44 %", "ours says", "error/promise"]
    field, ranks = dense_of(result), ranks_of(result)
    modes = list(dict.fromkeys(r["mode"] for r in result["rows"]))
    ops = ["sum", "average", "min"]  # a maximum is a minimum seen from the other side
    dense = sorted((r for r in result["per_field"] if r["field"] == field and r["op"] in ops),
                   key=lambda r: (ops.index(r["op"]), modes.index(r["mode"]), r["ranks"]))
    sums = sorted((r for r in result["per_field"] if (r["op"], r["ranks"]) == ("sum", ranks)),
                  key=lambda r: (modes.index(r["mode"]), r["field"]))
    return (f"{field}, {result['bytes'] / 2**20:g} MiB a rank, bound {result['bound']}; in units of e, the bound of one compression\n" +
            table(head, [[r["op"], r["mode"], r["ranks"], *figures(r)] for r in dense]) +
            f"\n\nsums over {ranks} ranks, by field\n" +
            table(["field", "mode", *head[3:]], [[r["field"], r["mode"], *figures(r)] for r in sums]) + "\n")


def figures(r):
    ours = r["ours"]
    known = ours["law"] != "none"

    def beside(measured, expected, shown=True):
        return f"{measured:.3f} ({f'{expected:.3f}' if shown else '-'})"
    return [beside(r["bias"], ours["bias"], known), beside(r["sigma"], ours["sigma"], known), f"{r['papers']['sigma']:.3f}",
            f"{r['rms']:.3f}", f"{r['percentiles']['99']:.3f}", beside(r["max"], ours["certain"]),
            f"{100 * r['within_papers_interval']:.1f} %", f"{100 * ours['within_papers_interval']:.1f} %" if known else "-",
            f"{r['over_promise']:.4f}"]
