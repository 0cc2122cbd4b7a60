//! Checks in tests that markup is well formed.

/// The names of all elements in order. Panics if tags do not match, if an attribute is not quoted or is
/// repeated, or if `<` or `&` is not escaped.
pub(crate) fn elements(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        check_text(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix("!DOCTYPE html>") {
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix('/') {
            let end = after.find('>').expect("a closing tag ends");
            assert_eq!(open.pop().as_deref(), Some(&after[..end]), "tags match");
            rest = &after[end + 1..];
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).expect("a tag ends");
        assert!(end > 0, "a bare < before {:?}", &rest[..rest.len().min(40)]);
        let name = rest[..end].to_owned();
        let (closed, after) = attributes(&rest[end..]);
        rest = after;
        names.push(name.clone());
        if !closed && (name == "style" || name == "script") {
            let end = rest.find(&format!("</{name}>")).expect("raw text ends");
            assert!(!rest[..end].contains('<') || name == "script");
            rest = &rest[end..];
        }
        if !closed {
            open.push(name);
        }
    }
    check_text(rest);
    assert!(open.is_empty(), "left open: {open:?}");
    names
}

/// Reads attributes up to the end of a tag: whether it closes itself, and what follows.
fn attributes(mut rest: &str) -> (bool, &str) {
    let mut seen: Vec<&str> = Vec::new();
    loop {
        let trimmed = rest.trim_start();
        if let Some(after) = trimmed.strip_prefix("/>") {
            return (true, after);
        }
        if let Some(after) = trimmed.strip_prefix('>') {
            return (false, after);
        }
        assert!(trimmed.len() < rest.len(), "space before an attribute: {:?}", &rest[..20]);
        let (name, after) = trimmed.split_once("=\"").expect("attributes are quoted");
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == ':';
        assert!(name.chars().all(plain), "attribute {name:?}");
        assert!(!seen.contains(&name), "attribute {name} twice");
        seen.push(name);
        let (value, after) = after.split_once('"').expect("quotes end");
        assert!(!value.contains('<'));
        check_text(value);
        rest = after;
    }
}

fn check_text(text: &str) {
    for (at, _) in text.match_indices('&') {
        let entity = text[at + 1..].split(';').next().unwrap_or_default();
        assert!(["amp", "lt", "gt", "quot", "#39"].contains(&entity), "a bare & before {entity:?}");
    }
    let allowed = |c: char| c >= ' ' || matches!(c, '\n' | '\t' | '\r');
    assert!(text.chars().all(allowed), "a control character in {text:?}");
}

#[cfg(test)]
mod tests {
    use super::elements;

    #[test]
    fn broken_markup_is_seen() {
        assert_eq!(elements("<a b=\"c\"><d/>x &lt; y</a>"), ["a", "d"]);
        for broken in
            ["<a>", "<a></b>", "<a b=c/>", "a & b", "<a b=\"1\" b=\"2\"/>", "</a>", "1 < 2"]
        {
            assert!(std::panic::catch_unwind(|| elements(broken)).is_err(), "{broken}");
        }
    }
}
