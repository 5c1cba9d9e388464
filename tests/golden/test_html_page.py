"""HTML as plain text: what is said by a page, and where its sections begin."""

from __future__ import annotations

import pytest

from evaltrack.golden.corpus.chunkers import Page, PageError, Section
from evaltrack.golden.corpus.html_page import read_html


def text(html: str) -> str:
    (section,) = read_html(html, "name").sections
    return section.text


def test_page() -> None:
    """The first `<h1>` is the title, each `<h2>` starts a section, deeper headings are text."""
    html = "<title>Site</title><h1>Title</h1>Lead.<h2 id=one>One</h2><p>a<h3>Deep</h3>b<h2>Two</h2>c<h1>More</h1>d"
    assert read_html(html, "name") == Page(
        "Title",
        (
            Section("", "Lead.", ""),
            Section("One", "a\n\n### Deep\n\nb", "one"),
            Section("Two", "c", ""),
            Section("More", "d", ""),
        ),
    )


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title>Site &amp;\n more</title>text", "Site & more"),
        ("<title>Site</title><h1></h1>text", "Site"),
        ("<title></title>text", "name"),
        ("text", "name"),
        ("<header><h1>Site</h1></header><main><h1>Page</h1>text</main>", "Page"),
        ("<header><h1>Page</h1></header>text", "Page"),
    ],
)
def test_title(html: str, title: str) -> None:
    """Without an `<h1>` in what is read it is `<title>`, and without that the name of the file."""
    assert read_html(html, "name").title == title


@pytest.mark.parametrize(
    "html",
    [
        "<nav>no</nav><main>yes</main><aside>no</aside>",
        "<div>no</div><div role=main>yes</div>",
        "<div>no</div><article>yes</article>",
        "<header>no</header>yes<footer>no</footer>",
        "<div role=navigation>no</div><div role=banner>no</div>yes<div role=search>no</div>",
        "yes<script>no</script><style>no</style><noscript>no</noscript><template>no</template><!-- no -->",
        "yes<button>no</button><select><option>no</select><textarea>no</textarea><svg><text>no</text></svg>",
        "yes<p hidden>no</p><span aria-hidden=true>no</span><iframe>no</iframe>",
        "<form>yes</form>",
    ],
)
def test_only_what_the_page_says_is_read(html: str) -> None:
    assert text(html) == "yes"


def test_several_articles_are_read() -> None:
    assert text("a<article>b</article><article>c</article>") == "a\n\nb\n\nc"


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("<h2 id=a>Use</h2>", "a"),
        ("<section id=a><h2>Use</h2>", "a"),
        ("<div id=a>\n <h2>Use</h2>", "a"),
        ("<div id=a><p>x</p><h2>Use</h2>", ""),
        ("<div id=b><h2>Use<a class=mark href=#a id=a>#</a></h2>", "a"),
        ("<h2 id=a>Use<a class=headerlink href=#a title=Link>\N{PILCROW SIGN}</a></h2>", "a"),
        ("<h2 id=a>Use <a class=anchor href=#a><svg><path></svg></a></h2>", "a"),
        ("<h2><a href=#a id=a>Use</a></h2>", "a"),
        ("<h2>Use</h2>", ""),
    ],
)
def test_headings_know_where_links_lead(heading: str, anchor: str) -> None:
    _, section = read_html(f"<h1>T</h1>{heading}text", "name").sections
    assert section == Section("Use", "text", anchor)


@pytest.mark.parametrize(
    ("html", "plain"),
    [
        ("<p>one\n  <b>bo</b>ld <a href=x>link</a>.<p>two", "one bold link.\n\ntwo"),
        ("one<br>two<br><br>three", "one\ntwo\nthree"),
        ("<ul><li>a<li>b<ul><li><p>c</p></ul></ul><p>d", "- a\n- b\n- c\n\nd"),
        ("<dl><dt>term<a href=#t>\N{PILCROW SIGN}</a><dd>what it is</dl>", "term\n\nwhat it is"),
        ("see <img src=x alt='a map'> <img src=y> here", "see a map here"),
        ("<h3>C#</h3>x", "### C#\n\nx"),
        ("a &lt;b&gt; &amp; caf&eacute;", "a <b> & café"),
        ("\u2028a\u00a0b", "a b"),
        ("<p>unclosed <i>x<p>y</div></b>z", "unclosed x\n\nyz"),
    ],
)
def test_text(html: str, plain: str) -> None:
    """Paragraphs and lists keep their lines, markup leaves its words."""
    assert text(html) == plain


@pytest.mark.parametrize(
    ("html", "plain"),
    [
        ("<pre>\ndef f():\n    <b>return</b> 1\n\n</pre>", "```\ndef f():\n    return 1\n```"),
        ("a<pre><code>x</code></pre>b", "a\n\n```\nx\n```\n\nb"),
        ("<pre>```\nx\n```</pre>", "````\n```\nx\n```\n````"),
        ("say <code>a  b</code>", "say a b"),
    ],
)
def test_code(html: str, plain: str) -> None:
    """Code keeps its lines and spaces, in a fence that it does not close."""
    assert text(html) == plain


@pytest.mark.parametrize(
    ("html", "plain"),
    [
        (
            "<table><caption>Fares</caption><tr><th>From<th>EUR<tr><td><p>Bonn</p><p>Ulm</p><td>1<br>2</table>",
            "Fares\n| From | EUR |\n| Bonn Ulm | 1 2 |",
        ),
        ("<table><tr></tr><tr><td>a<img alt=b></table>", "| a b |"),
        ("<table><tr><td class=linenos><pre>1</pre><td><pre>x = 1</pre></table>", "```\n1\n```\n\n```\nx = 1\n```"),
        ("<table><tr><td>menu<td><table><tr><td>a<td>b</table></table>", "menu\n\n| a | b |"),
    ],
)
def test_tables(html: str, plain: str) -> None:
    """A row is a line; a table that only places code or other tables is none."""
    assert text(html) == plain


def test_headings_in_tables_start_sections() -> None:
    page = read_html("<table><tr><td>menu<td><h1>T</h1>a<h2>S</h2>b</table>", "name")
    assert [(section.heading, section.text) for section in page.sections] == [("", "menu\n\na"), ("S", "b")]


@pytest.mark.parametrize("html", ["", "<frameset><frame src=x></frameset>", "\x00", "<", "<!--", "<html><body></body>"])
def test_pages_without_text(html: str) -> None:
    page = read_html(html, "name")
    assert page.title == "name"
    assert not "".join(section.text for section in page.sections).strip("<\N{REPLACEMENT CHARACTER}")


def test_nesting_is_bounded() -> None:
    """Also where the elements are closed again; elements that need no end tag do not count."""
    assert text("<div>" * 900 + "x" + "</div>" * 900) == "x"
    for hostile in ("<div>" * 1001, "<b>" * 1001 + "</b>" * 1001):
        with pytest.raises(PageError, match=r"^its elements are nested deeper than 1,000; correct or remove it$"):
            read_html(hostile, "name")
    assert text("<p>" * 5000 + "x" + "<br>" * 5000) == "x"
