//! A web page as Markdown.
//!
//! Pages are hostile. A page that nests very deep would take the parser too long and overflow the stack of the tree
//! walk, so the program only strips the tags of such a page.

use std::rc::Rc;

use htmd::element_handler::Handlers;
use htmd::options::{BulletListMarker, Options};
use htmd::{Element, HtmlToMarkdown};
use html5ever::tendril::TendrilSink as _;
use html5ever::{ParseOpts, parse_document};
use markup5ever_rcdom::{Node, NodeData, RcDom};
use url::Url;

/// Elements around the content that a reader skips.
const NOISE: [&str; 9] =
    ["aside", "button", "dialog", "footer", "form", "iframe", "nav", "select", "svg"];
/// Elements that never contain text.
const MACHINERY: [&str; 8] =
    ["canvas", "embed", "head", "noscript", "object", "script", "style", "template"];
/// A page whose text without the noise has fewer bytes is read with the noise.
const TOO_LITTLE: usize = 200;
/// The deepest nesting that is parsed: no page that a person wrote needs more.
const DEEPEST: usize = 250;

pub(super) fn to_markdown(html: &str, base: &Url) -> String {
    let Some(tree) = parse(html) else { return strip_tags(html) };
    let mut text = converter(base, true).tree_to_markdown(&tree);
    if text.len() < TOO_LITTLE {
        text = converter(base, false).tree_to_markdown(&tree);
    }
    let text = text.trim();
    match title(&tree) {
        Some(title) if !text.starts_with(&format!("# {title}")) => format!("# {title}\n\n{text}"),
        _ => text.to_owned(),
    }
}

/// Parses a page; `None` when it nests too deep.
///
/// Parses in small parts and counts the open elements after each: every further level makes parsing slower, and a page
/// can open a million.
fn parse(html: &str) -> Option<Rc<Node>> {
    const PART: usize = 4_096;
    let mut parser = parse_document(RcDom::default(), ParseOpts::default());
    let mut rest = html;
    while !rest.is_empty() {
        let (part, more) = rest.split_at(rest.ceil_char_boundary(PART));
        parser.process(part.into());
        if open_elements(&parser.tokenizer.sink.sink.document) > DEEPEST {
            return None;
        }
        rest = more;
    }
    let tree = parser.finish().document;
    (depth(&tree) <= DEEPEST).then_some(tree)
}

/// The number of elements that are open at the end of the page.
fn open_elements(tree: &Rc<Node>) -> usize {
    let last = |node: &Rc<Node>| node.children.borrow().last().cloned();
    std::iter::successors(Some(Rc::clone(tree)), last).count()
}

/// The depth of a tree, found without recursion.
fn depth(tree: &Rc<Node>) -> usize {
    nodes(tree).map(|(_, depth)| depth).max().unwrap_or_default()
}

/// All nodes of a tree with their depth, in the order of the page.
fn nodes(tree: &Rc<Node>) -> impl Iterator<Item = (Rc<Node>, usize)> {
    let mut open = vec![(Rc::clone(tree), 0)];
    std::iter::from_fn(move || {
        let (node, depth) = open.pop()?;
        let children = node.children.borrow();
        open.extend(children.iter().rev().map(|child| (Rc::clone(child), depth + 1)));
        drop(children);
        Some((node, depth))
    })
}

fn title(tree: &Rc<Node>) -> Option<String> {
    let is_title = |node: &Node| matches!(&node.data, NodeData::Element { name, .. } if &*name.local == "title");
    let (title, _) = nodes(tree).find(|(node, _)| is_title(node))?;
    let text: String = nodes(&title)
        .filter_map(|(node, _)| match &node.data {
            NodeData::Text { contents } => Some(contents.borrow().to_string()),
            _ => None,
        })
        .collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

fn converter(base: &Url, without_noise: bool) -> HtmlToMarkdown {
    let noise = if without_noise { NOISE.as_slice() } else { &[] };
    let skipped = MACHINERY.iter().chain(noise).copied().collect();
    let (link_base, image_base) = (base.clone(), base.clone());
    HtmlToMarkdown::builder()
        .options(Options {
            bullet_list_marker: BulletListMarker::Dash,
            ul_bullet_spacing: 1,
            ol_number_spacing: 1,
            ..Options::default()
        })
        .skip_tags(skipped)
        .add_handler(vec!["a"], move |handlers: &dyn Handlers, element: Element<'_>| {
            let text = handlers.walk_children(element.node).content;
            let text = text.trim();
            let target = attribute(&element, "href").and_then(|href| absolute(&link_base, &href));
            Some(match target {
                Some(target) if !text.is_empty() => format!("[{text}]({target})").into(),
                _ => text.into(),
            })
        })
        .add_handler(vec!["img"], move |_: &dyn Handlers, element: Element<'_>| {
            let text = attribute(&element, "alt").filter(|text| !text.trim().is_empty())?;
            let source = attribute(&element, "src").and_then(|src| absolute(&image_base, &src))?;
            Some(format!("![{}]({source})", text.trim()).into())
        })
        .build()
}

fn attribute(element: &Element<'_>, name: &str) -> Option<String> {
    let attribute = element.attrs.iter().find(|attribute| &*attribute.name.local == name)?;
    Some(attribute.value.to_string())
}

/// A link that leads to another page: not within the page, not into a script, not with inline data.
fn absolute(base: &Url, link: &str) -> Option<Url> {
    let link = link.trim();
    let url = base.join(link).ok()?;
    (!link.starts_with('#') && matches!(url.scheme(), "http" | "https" | "mailto" | "ftp"))
        .then_some(url)
}

/// The text of a page, without its structure.
fn strip_tags(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((words, tail)) = rest.split_once('<') {
        text.push_str(words);
        text.push(' ');
        let hidden = ["script", "style"]
            .into_iter()
            .find(|name| tail.get(..name.len()).is_some_and(|tag| tag.eq_ignore_ascii_case(name)));
        let behind = match hidden {
            Some(name) => tail.find(&format!("</{name}")).and_then(|end| tail.get(end..)),
            None => Some(tail),
        };
        rest = behind.and_then(|tail| tail.split_once('>')).map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markdown(html: &str) -> String {
        to_markdown(html, &"https://example.com/docs/page".parse().unwrap())
    }

    #[test]
    fn a_page_becomes_its_text() {
        let filler = "Words enough for a page of its own. ".repeat(10);
        let html = format!(
            "<!doctype html><html><head><title>A &amp; B</title><style>p{{}}</style></head><body>\
             <nav><a href=/home>Home</a></nav><h2>First</h2><p>{filler}</p>\
             <script>alert('<p>no</p>')</script><ul><li>one<li>two</ul>\
             <p>See <a href='../more?x=1'>more</a> and <a href='#top'>top</a>.</p>\
             <img src=data:image/png;base64,AAAA alt=blob><img src=/logo.png alt=Logo>\
             <pre><code>let x = 1;\n</code></pre><footer>Imprint</footer></body></html>"
        );
        let text = markdown(&html);
        assert!(text.starts_with("# A & B\n\n## First\n\nWords enough"), "{text}");
        assert!(text.contains("- one\n- two"), "{text}");
        assert!(text.contains("See [more](https://example.com/more?x=1) and top."), "{text}");
        assert!(text.contains("![Logo](https://example.com/logo.png)"), "{text}");
        assert!(text.contains("```\nlet x = 1;\n```"), "{text}");
        for noise in ["Home", "Imprint", "alert", "p{}", "base64"] {
            assert!(!text.contains(noise), "{noise} in {text}");
        }
    }

    #[test]
    fn a_page_of_noise_alone_is_read_with_it() {
        assert_eq!(markdown("<nav><a href=/a>A</a></nav>"), "[A](https://example.com/a)");
        assert_eq!(markdown("<title>T</title><h1>T</h1>"), "# T");
        assert_eq!(markdown(""), "");
    }

    #[test]
    fn a_page_that_nests_without_measure_does_no_harm() {
        let deep = format!("{}deep <b>words</b>", "<div>".repeat(300_000));
        assert_eq!(markdown(&deep), "deep words");
        let tricks = "<div title='</div>'><script>'</div>'</script><b></span>";
        assert!(markdown(&format!("{}end", tricks.repeat(20_000))).ends_with(" end"));
        // An ordinary page does not nest, however long it is.
        let long = "<p>one<li>two<br><div>three</div>".repeat(20_000);
        assert_eq!(markdown(&long).matches("three").count(), 20_000);
        assert_eq!(depth(&parse("<p>a<p>b<ul><li>c<li>d").unwrap()), 5);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived(html in "(<|>|/|!--|-->|div|p|a|script|title|\"|'|=| |ä|x){0,60}") {
            let _ = markdown(&html);
            let _ = strip_tags(&html);
        }
    }
}
