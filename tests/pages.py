"A MediaWiki dump of the world's articles, with the markup that real pages have, and pages that are none."

from xml.sax.saxutils import escape


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
