//! Runs on disk: a folder that keeps checkpoints until the model is written.
//!
//! [`RunFolder`] says where everything is and whether a run is finished, and a [`RunLock`] keeps other processes out.
//! [`CheckpointKeeper`] writes
//! checkpoints while a run goes on. [`RunRecord`] is what `run.json` and the model card say about a
//! finished run.

mod card;
mod folder;
mod keeper;
mod lock;
mod record;

pub use folder::RunFolder;
pub use keeper::CheckpointKeeper;
pub use lock::RunLock;
pub use record::{RunInputs, RunRecord};
