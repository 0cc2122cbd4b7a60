//! Values separated by commas, with or without quotes.

use std::ops::Range;

use crate::files::text::shown;

/// A value: the position of its text, and whether it was in quotes.
#[derive(Debug, Clone)]
pub(super) struct ArffWord {
    pub(super) at: Range<usize>,
    pub(super) quoted: bool,
}

/// The values of one line, in a buffer that is reused.
#[derive(Debug, Default)]
pub(super) struct ArffWords {
    text: String,
    pub(super) words: Vec<ArffWord>,
}

impl ArffWords {
    /// Removes all values.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.words.clear();
    }

    /// The text of a value.
    pub(super) fn text(&self, word: &ArffWord) -> &str {
        &self.text[word.at.clone()]
    }

    /// The texts of all values.
    pub(super) fn texts(&self) -> Vec<String> {
        self.words.iter().map(|word| self.text(word).to_owned()).collect()
    }

    /// Splits a text at its commas. An empty text is one empty value.
    pub(super) fn split(&mut self, text: &str) -> Result<(), String> {
        self.clear();
        let mut rest = Some(text);
        while let Some(text) = rest {
            rest = self.take(text)?;
        }
        Ok(())
    }

    /// Adds the value at the start of a text and returns what follows its comma, if there is one.
    pub(super) fn take<'t>(&mut self, text: &'t str) -> Result<Option<&'t str>, String> {
        let text = text.trim_start();
        let (quoted, after) = match quoted(text)? {
            Some((value, after)) => {
                let from = self.text.len();
                unescape(value, &mut self.text);
                self.words.push(ArffWord { at: from..self.text.len(), quoted: true });
                (true, after.trim_start())
            }
            None => (false, text),
        };
        let (plain, rest) = match after.split_once(',') {
            Some((plain, rest)) => (plain, Some(rest)),
            None => (after, None),
        };
        match (quoted, plain.trim_end()) {
            (true, "") => {}
            (true, more) => {
                return Err(format!("there is {} after the quote that ends a value", shown(more)));
            }
            (false, plain) => {
                let from = self.text.len();
                self.text.push_str(plain);
                self.words.push(ArffWord { at: from..self.text.len(), quoted: false });
            }
        }
        Ok(rest)
    }
}

/// The content of quotes at the start of a text, with its backslashes, and what follows them.
pub(super) fn quoted(text: &str) -> Result<Option<(&str, &str)>, String> {
    let Some(quote) = text.chars().next().filter(|first| matches!(first, '\'' | '"')) else {
        return Ok(None);
    };
    let inside = &text[1..];
    let mut escaped = false;
    for (at, character) in inside.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return Ok(Some((&inside[..at], &inside[at + 1..]))),
            _ => {}
        }
    }
    Err(format!("a quote opens {} and nothing closes it", shown(inside)))
}

/// Adds a text without its backslashes.
pub(super) fn unescape(text: &str, out: &mut String) {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => {}
            },
            character => out.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Result<Vec<String>, String> {
        let mut words = ArffWords::default();
        words.split(text)?;
        Ok(words.texts())
    }

    #[test]
    fn values_are_cut_at_commas_outside_quotes() {
        assert_eq!(split("1, b c ,?").unwrap(), ["1", "b c", "?"]);
        assert_eq!(split(r#"'a, b' , "it's",'\'\n\\'"#).unwrap(), ["a, b", "it's", "'\n\\"]);
        assert_eq!(split("").unwrap(), [""]);
        assert_eq!(split("a,").unwrap(), ["a", ""]);
        assert_eq!(split("it's").unwrap(), ["it's"]);
        assert!(split("'a").unwrap_err().contains("nothing closes it"));
        assert!(split("'a\\'").unwrap_err().contains("nothing closes it"));
        assert!(split("'a' b,c").unwrap_err().contains("`b` after the quote"));
    }
}
