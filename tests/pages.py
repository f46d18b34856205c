"A MediaWiki dump of the world's articles, with the markup that real pages have, and pages that are none."

from xml.sax.saxutils import escape

from treekit.synthetic.generate import SyntheticWiki


def wikitext(article):
    "An article as an editor would have written it: infobox, links, references, a file, a comment, sections at the end that only point elsewhere."
    out = [
        f"{{{{Infobox {article.kind}|name={article.title}|image=[[File:{article.title}.jpg|thumb|A [[view]]]]}}}}<!-- {article.id} -->"
    ]
    for line in article.text.split("\n\n")[1:]:
        if line.startswith("#"):
            out.append("=" * (level := line.index(" ")) + line[level:] + " " + "=" * level)
        else:
            words = line.split(" ")
            for i in range(3, len(words), 9):
                words[i] = f"[[{words[i]}|{words[i]}]]"
            for i in range(7, len(words), 20):
                words[i] += (
                    f'<ref name="a/{i}">{{{{cite web|url=http://www.example.org/{i}|title=A page|date=1 May 2011|publisher=[[X]]}}}}</ref>'
                )
            out.append(" ".join(words))
    return "\n\n".join(out) + "\n\n== References ==\n{{reflist}}\n\n== See also ==\n* [[X]]\n\n[[Category:A]]\n"


def page(title, id, text, space=0, redirect=""):
    to = f'    <redirect title="{escape(redirect)}" />\n' if redirect else ""
    return (
        f"  <page>\n    <title>{escape(title)}</title>\n    <ns>{space}</ns>\n    <id>{id}</id>\n{to}    <revision>\n      <id>1</id>\n   "
        f"   <model>wikitext</model>\n"
        f'      <text xml:space="preserve">{escape(text)}</text>\n    </revision>\n  </page>\n'
    )


def write_dump(path, articles, opened=open):
    "A dump of so many articles, each tenth followed by a redirect to it, and one talk page, list, disambiguation page and empty page in a hundred."
    with opened(path, "wt", encoding="utf-8") as f:
        f.write('<mediawiki xml:lang="en">\n  <siteinfo>\n    <sitename>World</sitename>\n  </siteinfo>\n')
        for n, a in enumerate(SyntheticWiki(articles=articles).articles()):
            f.write(page(a.title, a.id, wikitext(a)))
            if n % 10 == 0:
                f.write(page(f"About {a.title}", f"r{n}", f"#REDIRECT [[{a.title}]]", redirect=a.title))
            if n % 100 == 0:
                f.write(
                    page(f"Talk:{a.title}", f"t{n}", "x", 1)
                    + page(f"List of {n}", f"l{n}", "* x")
                    + page(f"No {n}", f"d{n}", "* x\n{{disambiguation}}")
                    + page(f"Blank {n}", f"b{n}", "{{stub}}")
                )
        f.write("</mediawiki>\n")
