//! What the command says to people.
//!
//! If nobody listens any more, the work goes on. Texts from untrusted sources, such as names of columns, cannot
//! control the terminal.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use phex::infer::{Engine, Options};
use phex::model::Model;

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

/// Chooses an engine for a model. After a second it says that this takes time.
pub(crate) fn engine(
    model: impl Into<std::sync::Arc<Model>>,
    options: &Options,
) -> Result<Engine, phex::Error> {
    let model = model.into();
    let text = format!("choosing an engine for {} labels; --search bounds this", model.len());
    patiently(Duration::from_secs(1), move || say(text), || Engine::compile(model, options))
}

/// Does some work, and announces it if it is not done after some time.
fn patiently<A>(patience: Duration, announce: impl FnOnce() + Send, work: impl FnOnce() -> A) -> A {
    let (finished, waiting) = mpsc::channel::<()>();
    thread::scope(move |scope| {
        // Where no thread can be started, nothing is announced.
        let _ = thread::Builder::new().spawn_scoped(scope, move || {
            if waiting.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                announce();
            }
        });
        let answer = work();
        drop(finished);
        answer
    })
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
    use std::sync::mpsc;
    use std::time::Duration;

    use super::{patiently, shortened, visible};

    #[test]
    fn slow_work_is_announced_and_fast_work_is_not() {
        let (announced, heard) = mpsc::channel();
        let announce = move || announced.send(()).unwrap();
        // The work ends when the announcement has been heard.
        assert_eq!(patiently(Duration::ZERO, announce, || heard.recv()), Ok(()));
        let never = || panic!("announced");
        assert_eq!(patiently(Duration::from_secs(3600), never, || 7), 7);
    }

    #[test]
    fn long_words_are_cut() {
        let long = "é".repeat(600);
        let cut = format!("the label {}… is unknown", "é".repeat(100));
        assert_eq!(shortened(&format!("the label {long} is unknown")), cut);
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
