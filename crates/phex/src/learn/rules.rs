//! The constants by which losses choose their passes, for the CPU and for devices.

/// The largest change of a score in a difference of two passes. Both errors of the difference, of the step and of rounding,
/// are then below 1e-9 of the largest slope.
pub const DIFFERENCE_STEP: f64 = 3e-5;

/// The marginal loss clamps a label in a pass of its own if its evidence is less probable than this. In a difference of passes
/// its slope would be so large that digits are lost.
pub const IMPROBABLE: f64 = 0.05;

/// The marginal loss also clamps each label alone if no more than these are not improbable: two passes in doubles cost more
/// than two in singles.
pub const FEW_LABELS: usize = 2;
