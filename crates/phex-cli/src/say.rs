//! What the command says to people.
//!
//! If nobody listens any more, the work goes on. Texts from untrusted sources, such as names of columns, cannot
//! control the terminal.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};

/// Says a line, or several, on standard error.
pub(crate) fn say(text: impl Display) {
    let text = text.to_string();
    // A closed pipe or a full disk must not end the work.
    let _ = writeln!(io::stderr().lock(), "{}", visible(&text));
}

/// A text with control characters as escapes, except line breaks and tabs. Marks that reverse the direction of text count
/// as control characters.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if hidden(c) {
            let _ = write!(shown, "{}", c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(visible("a\tb\nç"), "a\tb\nç");
        assert_eq!(
            visible("\u{1b}[31mred\r\0\u{9b}\u{202e}"),
            "\\u{1b}[31mred\\r\\u{0}\\u{9b}\\u{202e}"
        );
    }
}
