//! The text of one file with its name: lines, line numbers and errors.

use crate::Error;

/// A decoded file and its name in messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceText<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

impl<'a> SourceText<'a> {
    /// Decodes UTF-8, with or without a byte order mark.
    pub(crate) fn decode(bytes: &'a [u8], name: &'a str) -> Result<SourceText<'a>, Error> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(SourceText { name, text }),
            Err(error) => {
                let good = &bytes[..error.valid_up_to()];
                let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count();
                let utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
                let hint = if utf16 { " (it looks like UTF-16)" } else { "" };
                let message = format!("the text is not UTF-8{hint}; save the file as UTF-8");
                Err(Error::Syntax { path: name.to_owned(), line, message })
            }
        }
    }

    /// The lines with their numbers from 1, without line ends.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        (1..).zip(self.text.lines())
    }

    /// An error at a line.
    pub(crate) fn error(&self, line: usize, message: impl Into<String>) -> Error {
        Error::Syntax { path: self.name.to_owned(), line, message: message.into() }
    }

    /// Finds the lines of byte offsets.
    pub(crate) fn line_counter(&self) -> LineCounter<'a> {
        LineCounter { text: self.text.as_bytes(), at: 0, line: 1 }
    }
}

/// Turns byte offsets into line numbers. It counts from the last offset requested, so that offsets
/// in ascending order cost one pass over the text in total.
#[derive(Debug, Clone)]
pub(crate) struct LineCounter<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
}

impl LineCounter<'_> {
    pub(crate) fn line(&mut self, offset: usize) -> usize {
        let offset = offset.min(self.text.len());
        let breaks = |part: &[u8]| part.iter().filter(|&&byte| byte == b'\n').count();
        if offset >= self.at {
            self.line += breaks(&self.text[self.at..offset]);
        } else {
            self.line -= breaks(&self.text[offset..self.at]);
        }
        self.at = offset;
        self.line
    }
}

/// The text as messages show it: quoted, and cut when long.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("`{}…`", text[..end].escape_debug()),
        None => format!("`{}`", text.escape_debug()),
    }
}

/// Names of more bytes are not compared, which takes the square of their length. Nobody types such a name.
const LONGEST_COMPARED: usize = 256;

/// `; did you mean …?` with the known name that is closest to an unknown one; empty when none is
/// close.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    if name.len() > LONGEST_COMPARED {
        return String::new();
    }
    let allowed = (name.chars().count() / 3).max(1);
    let lower = name.to_lowercase();
    let nearest = known
        .filter(|label| label.len().abs_diff(name.len()) <= 4 * allowed)
        .map(|label| (strsim::damerau_levenshtein(&lower, &label.to_lowercase()), label))
        .filter(|&(distance, _)| distance <= allowed)
        .min();
    match nearest {
        Some((_, label)) => format!("; did you mean `{label}`?"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_order_mark_and_line_ends_are_dropped() {
        let source = SourceText::decode(b"\xef\xbb\xbfa\r\nb\n", "x").unwrap();
        assert_eq!(source.lines().collect::<Vec<_>>(), [(1, "a"), (2, "b")]);
    }

    #[test]
    fn bad_utf8_has_a_line() {
        let error = SourceText::decode(b"a\nb\n\xff", "x.toml").unwrap_err();
        assert!(error.to_string().starts_with("x.toml:3: the text is not UTF-8;"), "{error}");
        let error = SourceText::decode(b"\xff\xfea\0", "x").unwrap_err();
        assert!(error.to_string().contains("UTF-16"), "{error}");
    }

    #[test]
    fn offsets_become_lines_in_any_order() {
        let source = SourceText { name: "x", text: "a\nbb\n\nc" };
        let mut counter = source.line_counter();
        for (offset, line) in [(0, 1), (6, 4), (2, 2), (5, 3), (99, 4), (1, 1)] {
            assert_eq!(counter.line(offset), line, "{offset}");
        }
    }
}
