pub(crate) struct Sampler;
