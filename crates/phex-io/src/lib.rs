//! Files of label-relation graphs.
