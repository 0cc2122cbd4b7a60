//! Text inside XML and HTML.

use std::borrow::Cow;

/// Escapes text as the content of an element or of a quoted attribute, in XML and in HTML.
///
/// Characters that XML 1.0 forbids become `\u{fffd}`, because a single one makes a whole picture unreadable.
/// O(length).
///
/// ```
/// assert_eq!(phex_report::escape_markup("cats & <dogs>"), "cats &amp; &lt;dogs&gt;");
/// ```
pub fn escape_markup(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|character| replacement(character).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match replacement(character) {
            Some(replacement) => out.push_str(replacement),
            None => out.push(character),
        }
    }
    Cow::Owned(out)
}

fn replacement(character: char) -> Option<&'static str> {
    match character {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\'' => Some("&#39;"),
        '\t' | '\n' | '\r' => None,
        '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => Some("\u{fffd}"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_markup_reserves_or_forbids_is_replaced() {
        assert_eq!(escape_markup("a<b>&\"c\"'"), "a&lt;b&gt;&amp;&quot;c&quot;&#39;");
        assert_eq!(escape_markup("a\u{1}b\u{ffff}\n"), "a\u{fffd}b\u{fffd}\n");
        assert!(matches!(escape_markup("plain ünïcode"), Cow::Borrowed(_)));
    }
}
