//! Operations on candle's tape whose values are computed beforehand.
//!
//! Candle calls the forward function of an operation with bare storage, and accepts only its own errors.
//! The values are therefore computed first, where errors keep their fields, and the operation hands
//! them over. A loss hands over its gradient in the same way, so that forward and backward share the
//! passes of inference.

use std::sync::{Mutex, PoisonError};

use candle_core::{
    CpuStorage, CustomOp1, CustomOp2, DType, Layout, Result, Shape, Tensor, WithDType,
};

/// The values of an operation, until candle asks for them.
pub(crate) struct PendingValues {
    shape: Shape,
    storage: Mutex<Option<CpuStorage>>,
}

impl PendingValues {
    pub(crate) fn new<T: WithDType>(values: Vec<T>, shape: impl Into<Shape>) -> PendingValues {
        let storage = Mutex::new(Some(T::to_cpu_storage_owned(values)));
        PendingValues { shape: shape.into(), storage }
    }

    /// Hands them over without a copy: an operation runs forward once.
    pub(crate) fn take(&self) -> Result<(CpuStorage, Shape)> {
        let mut storage = self.storage.lock().unwrap_or_else(PoisonError::into_inner);
        match storage.take() {
            Some(storage) => Ok((storage, self.shape.clone())),
            None => Err(candle_core::Error::Msg(String::from("an operation ran forward twice"))),
        }
    }
}

/// A loss of logits, and of parameters if there are any.
pub(crate) struct Scalar {
    value: PendingValues,
    by_logits: Tensor,
    by_parameters: Option<Tensor>,
}

impl Scalar {
    /// A loss in the precision of the logits. Gradients have the shapes of their inputs.
    pub(crate) fn new(value: f64, by_logits: Tensor, by_parameters: Option<Tensor>) -> Scalar {
        let value = match by_logits.dtype() {
            DType::F64 => PendingValues::new(vec![value], ()),
            _ => PendingValues::new(vec![value as f32], ()),
        };
        Scalar { value, by_logits, by_parameters }
    }
}

impl CustomOp1 for Scalar {
    fn name(&self) -> &'static str {
        "relation-loss"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        self.value.take()
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        (&self.by_logits * factor(gradient)?).map(Some)
    }
}

impl CustomOp2 for Scalar {
    fn name(&self) -> &'static str {
        "learned-relation-loss"
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.value.take()
    }

    fn bwd(
        &self,
        _: &Tensor,
        _: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let factor = factor(gradient)?;
        let by_parameters = self.by_parameters.as_ref().map(|slope| slope * factor).transpose()?;
        Ok((Some((&self.by_logits * factor)?), by_parameters))
    }
}

fn factor(gradient: &Tensor) -> Result<f64> {
    gradient.to_dtype(DType::F64)?.to_scalar()
}
