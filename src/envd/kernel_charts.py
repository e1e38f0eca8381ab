"""Figures of matplotlib as images and as data (kernel.py). Compiled into the kernel's own names
when the first figure is shown."""


def figure_png(figure):
    import io
    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight")
    return out.getvalue()


def figure_chart(figure):
    axes = figure.get_axes()
    if not axes:
        return None
    if len(axes) == 1:
        return axes_chart(axes[0])
    title = figure.get_suptitle() if hasattr(figure, "get_suptitle") else ""
    return {"type": "superchart", "title": title or None,
            "elements": [axes_chart(a) for a in axes]}


def unit_of(label):
    found = re.search(r"\s\((.*?)\)|\[(.*?)\]", label or "")
    return (found.group(1) or found.group(2)) if found else None


def labels_of(axes):
    x, y = axes.get_xlabel() or None, axes.get_ylabel() or None
    return {"title": axes.get_title() or None, "x_label": x, "y_label": y, "x_unit": unit_of(x),
            "y_unit": unit_of(y)}


def is_date_axis(axis):
    get = getattr(axis, "get_converter", None)  # since matplotlib 3.10
    return "Date" in type(get() if get else axis.converter).__name__


def scale_of(axis, scale, ticks, names):
    if is_date_axis(axis):
        return "datetime"
    if scale != "linear":
        return scale
    categories = ticks and all(tick == i and str(i) != name
                               for i, (tick, name) in enumerate(zip(ticks, names)))
    return "categorical" if categories else "linear"


def axis_part(prefix, axis, scale):
    ticks = [float(t) for t in axis.get_majorticklocs()]
    names = [t.get_text() for t in axis.get_majorticklabels()]
    kind = scale_of(axis, scale, ticks, names)
    if kind == "datetime":
        from matplotlib.dates import num2date
        ticks = [num2date(t).isoformat() for t in ticks]
    return {f"{prefix}_ticks": ticks, f"{prefix}_tick_labels": names, f"{prefix}_scale": kind}


def point(value):
    text = str(value)
    return text[:19] if type(value).__name__ == "datetime64" else value


def points_of(pairs):
    return [[point(x), point(y)] for x, y in pairs]


def line_elements(axes):
    out = []
    for line in axes.get_lines():
        label = line.get_label()
        if label.startswith("_child"):
            label = f"Line {label[6:]}"
        out.append({"label": label,
                    "points": points_of(zip(line.get_xdata(), line.get_ydata()))})
    return out


def scatter_elements(axes):
    return [{"label": c.get_label(), "points": points_of(c.get_offsets())}
            for c in axes.collections]


def bar_chart(axes):
    out, swapped = [], False
    for container in axes.containers:
        upright = getattr(container, "orientation", "vertical") != "horizontal"
        swapped |= not upright
        names = axes.get_xticklabels() if upright else axes.get_yticklabels()
        values = [b.get_height() if upright else b.get_width() for b in container]
        group = container.get_label()
        group = "" if group.startswith("_container") else group
        out += [{"label": n.get_text(), "value": v, "group": group}
                for n, v in zip(names, values)]
    labels = labels_of(axes)
    if swapped:
        for part in ("label", "unit"):
            labels[f"x_{part}"], labels[f"y_{part}"] = labels[f"y_{part}"], labels[f"x_{part}"]
    return {"type": "bar", **labels, "elements": out}


def pie_chart(axes):
    return {"type": "pie", "title": axes.get_title() or None,
            "elements": [{"label": w.get_label(), "radius": w.r,
                          "angle": abs(round(w.theta2 - w.theta1, 4))} for w in axes.patches]}


def flat(values):
    return [float(v) for v in values]


def boxes_of(lines):
    """Five lines of two or more points each make a box: its outline, two whiskers, two caps, and
    its median; what has no line is an outlier."""
    boxes, others = [], []
    for line in lines:
        x, y = flat(line.get_xdata(orig=False)), flat(line.get_ydata(orig=False))
        (boxes if len(x) == 5 else others).append((x, y))
    return boxes, others


def box_elements(axes, outlines, lines):
    xs = {round(sum(x) / len(x), 6) for x, _ in outlines}
    upright = len(xs) == len(outlines) or len(outlines) == 1
    names = axes.get_xticklabels() if upright else axes.get_yticklabels()
    out = []
    for i, (x, y) in enumerate(outlines):
        place, value = (x, y) if upright else (y, x)
        low, high, inner = min(place), max(place), (min(value), max(value))
        ends, median, outliers = list(inner), None, []
        for lx, ly in lines:
            p, v = (lx, ly) if upright else (ly, lx)
            if not p or not low <= sum(p) / len(p) <= high:
                continue
            if len(p) == 2 and p[0] == p[1]:  # a whisker
                ends += v
            elif len(p) == 2 and v[0] == v[1] and inner[0] <= v[0] <= inner[1] and \
                    max(p) - min(p) > 0.9 * (high - low):
                median = v[0]
            elif len(set(p)) == 1:
                outliers += v
        label = names[i].get_text() if i < len(names) else str(i + 1)
        out.append({"label": label, "min": min(ends), "first_quartile": inner[0],
                    "median": median, "third_quartile": inner[1], "max": max(ends),
                    "outliers": outliers})
    return out


def axes_chart(axes):
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import PathPatch, Rectangle, Wedge
    from matplotlib.text import Text
    objects = [o for o in axes.get_children()
               if not isinstance(o, Text) and o in getattr(axes, "_children", [])]

    def only(*kinds):
        return bool(objects) and all(isinstance(o, kinds) for o in objects)
    if only(Line2D):
        outlines, lines = boxes_of(axes.get_lines())
        if outlines and len(lines) >= 5 * len(outlines):
            return {"type": "box_and_whisker", **labels_of(axes),
                    "elements": box_elements(axes, outlines, lines)}
    if only(PathPatch, Line2D) and any(isinstance(o, PathPatch) for o in objects):
        outlines = [tuple(flat(v) for v in p.get_path().vertices.T) for p in axes.patches]
        return {"type": "box_and_whisker", **labels_of(axes),
                "elements": box_elements(axes, outlines, boxes_of(axes.get_lines())[1])}
    for kinds, name, elements in ((Line2D, "line", line_elements),
                                  (PathCollection, "scatter", scatter_elements)):
        if only(kinds):
            return {"type": name, **labels_of(axes),
                    **axis_part("x", axes.xaxis, axes.get_xscale()),
                    **axis_part("y", axes.yaxis, axes.get_yscale()),
                    "elements": elements(axes)}
    if only(Wedge):
        return pie_chart(axes)
    if only(Rectangle):
        return bar_chart(axes)
    return {"type": "unknown", "title": axes.get_title() or None, "elements": []}
