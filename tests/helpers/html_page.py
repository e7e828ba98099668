"""A report page as a test sees it."""

from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "wbr", "hr", "img"}


class Page(HTMLParser):
    """A page as a tree of plain facts; a tag that is not closed, or an id that stands twice, is an error."""

    def __init__(self, path):
        super().__init__()
        self.text = path.read_text(encoding="utf-8").replace("\u00a0%", " %")
        self.open, self.ids, self.plots, self.tables, self.headings, self.links = [], [], [], [], [], []
        self.feed(self.text)
        self.close()
        assert self.open == [] and len(set(self.ids)) == len(self.ids)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [
            attributes[a] for a in ("src", "href", "action", "srcset", "data") if a in attributes and tag != "use"
        ]
        if tag == "svg":
            self.plots.append(attributes | {"title": "", "desc": ""})
        elif tag == "table":
            self.tables.append({"caption": "", "head": [], "rows": []})
        elif tag == "tr" and "tbody" in self.open:
            self.tables[-1]["rows"].append([])
        elif tag in ("td", "th") and "table" in self.open:
            (self.tables[-1]["head"] if "thead" in self.open else self.tables[-1]["rows"][-1]).append("")
        elif tag in ("h2", "strong"):
            self.headings.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        if self.open[-1:] in (["title"], ["desc"]) and "svg" in self.open:
            self.plots[-1][self.open[-1]] += data
        elif "caption" in self.open:
            self.tables[-1]["caption"] += data
        elif "thead" in self.open and "th" in self.open:
            self.tables[-1]["head"][-1] += data.strip()
        elif "tbody" in self.open and {"th", "td"} & set(self.open):
            self.tables[-1]["rows"][-1][-1] += data.strip()
        elif self.open[-1:] in (["h2"], ["strong"]):
            self.headings[-1] += data

    def table(self, start):
        return next(t for t in self.tables if t["caption"].startswith(start))

    def column(self, start, head):
        t = self.table(start)
        return [row[t["head"].index(head)] for row in t["rows"]]


def as_number(text):
    """A number as the page shows it."""
    return float(
        text.replace("\u2212", "-").replace(",", "").strip("\u2007\u2008\u25b2 \n").removeprefix("attention: ")
    )
