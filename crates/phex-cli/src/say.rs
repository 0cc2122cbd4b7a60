//! What the command says to people.
//!
//! If nobody listens any more, the work goes on. Texts of strangers, such as names of columns, cannot control the terminal.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};

/// Says a line, or several, on standard error.
pub(crate) fn say(text: impl Display) {
    let text = text.to_string();
    // A closed pipe or a full disk must not end the work.
    let _ = writeln!(io::stderr().lock(), "{}", visible(&shortened(&text)));
}

/// A word of more bytes than this is cut.
const LONGEST_WORD: usize = 1000;
/// How many characters of it are shown.
const SHOWN: usize = 100;

/// A text whose long words, such as names of a megabyte, are cut.
fn shortened(text: &str) -> Cow<'_, str> {
    let words = || text.split_inclusive(char::is_whitespace);
    if !words().any(|word| word.len() > LONGEST_WORD) {
        return Cow::Borrowed(text);
    }
    let short = |word: &str| match word.char_indices().nth(SHOWN) {
        Some((end, _)) if word.len() > LONGEST_WORD => {
            let space = word.chars().next_back().filter(|last| last.is_whitespace());
            format!("{}…{}", &word[..end], space.map(String::from).unwrap_or_default())
        }
        _ => word.to_owned(),
    };
    Cow::Owned(words().map(short).collect())
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
    use super::{shortened, visible};

    #[test]
    fn long_words_are_cut() {
        let long = "é".repeat(600);
        let cut = format!("the label {}… is no label", "é".repeat(100));
        assert_eq!(shortened(&format!("the label {long} is no label")), cut);
        assert_eq!(shortened("a  b\n"), "a  b\n");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(visible("a\tb\nç"), "a\tb\nç");
        assert_eq!(
            visible("\u{1b}[31mred\r\0\u{9b}\u{202e}"),
            "\\u{1b}[31mred\\r\\u{0}\\u{9b}\\u{202e}"
        );
    }
}
