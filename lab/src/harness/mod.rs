//! What all benchmarks and experiments share: data, runs that are kept, timing, statistics, tables, result files.

pub(crate) mod data;
mod job_queue;
mod journal;
mod progress;
mod random;
mod result_folder;
pub(crate) mod setups;
pub(crate) mod statistics;
pub(crate) mod stop;
pub(crate) mod table;
pub(crate) mod timing;

pub(crate) use job_queue::StopObserver;
pub use job_queue::{JobGroup, JobQueue};
pub use journal::Journal;
pub use progress::{ConsoleProgress, NoProgress, RunProgress};
pub(crate) use random::{RandomStream, normal_scores};
pub use result_folder::{ResultFolder, ResultPage};
pub use statistics::PairedTest;
pub use table::MarkdownTable;
