//! From a class × attribute matrix to relations.
//!
//! An entry `c`, from 0 to 1, says how certain it is that a class has an attribute. With a scale of
//! cost `w` it becomes
//!
//! ```text
//! hierarchy(attribute, class)  of cost  w · c         the class on and the attribute off
//! exclusion(class, attribute)  of cost  w · (1 − c)   both on
//! ```
//!
//! Relations of cost 0 are left out, so a binary matrix has one relation per entry. O(classes ·
//! attributes).

use phex::graph::{GraphBuilder, Strength};

/// How certain it is that each class has each attribute.
///
/// ```
/// use phex::graph::Strength;
/// use phex_io::ClassMatrix;
///
/// let (classes, attributes) = (["dolphin", "otter"].map(String::from), ["furry".to_owned()]);
/// let matrix = ClassMatrix {
///     classes: &classes,
///     attributes: &attributes,
///     certainties: &[Some(0.0), Some(0.75)],
/// };
/// let graph = matrix.builder(Strength::W(4.0), true).build()?;
/// assert_eq!(graph.hierarchy()[0].strength, Strength::W(3.0));
/// assert_eq!(graph.exclusions().len(), 2);
/// assert_eq!(graph.one_of()[0].labels.len(), 2);
/// # Ok::<(), phex::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ClassMatrix<'m> {
    /// The names of the classes: the rows.
    pub classes: &'m [String],
    /// The names of the attributes: the columns.
    pub attributes: &'m [String],
    /// The entries from 0 to 1, row after row; `None` where nothing is known.
    pub certainties: &'m [Option<f64>],
}

impl ClassMatrix<'_> {
    /// The labels, which are first the classes and then the attributes, and their relations. With
    /// `one_of_classes` the classes form a one-of group named `class`.
    ///
    /// # Panics
    /// When there is not one entry per class and attribute.
    pub fn builder(&self, scale: Strength, one_of_classes: bool) -> GraphBuilder {
        let width = self.attributes.len();
        assert_eq!(self.certainties.len(), self.classes.len() * width, "one entry per cell");
        let mut builder = GraphBuilder::new();
        for name in self.classes.iter().chain(self.attributes) {
            builder.label(name);
        }
        for (row, class) in self.classes.iter().enumerate() {
            let certainties = &self.certainties[row * width..(row + 1) * width];
            declare_class(&mut builder, class, self.attributes, certainties, scale);
        }
        if one_of_classes {
            builder.one_of("class", self.classes.iter().map(String::as_str), None);
        }
        builder
    }
}

/// Declares the relations of one class.
pub(super) fn declare_class(
    builder: &mut GraphBuilder,
    class: &str,
    attributes: &[String],
    certainties: &[Option<f64>],
    scale: Strength,
) {
    for (attribute, certainty) in attributes.iter().zip(certainties) {
        let Some(certainty) = certainty else { continue };
        let [hierarchy, exclusion] = cell_strengths(*certainty, scale);
        if let Some(strength) = hierarchy {
            builder.hierarchy(attribute, class, Some(strength));
        }
        if let Some(strength) = exclusion {
            builder.exclusion(class, attribute, Some(strength));
        }
    }
}

/// The strengths of the hierarchy edge from the attribute to the class, and of their exclusion;
/// `None` for a relation of no cost.
pub fn cell_strengths(certainty: f64, scale: Strength) -> [Option<Strength>; 2] {
    [scaled(scale, certainty), scaled(scale, 1.0 - certainty)]
}

/// A strength of a part of the cost, in the same unit.
fn scaled(scale: Strength, part: f64) -> Option<Strength> {
    let strength = match scale {
        _ if part == 0.0 => return None,
        Strength::Hard => Strength::Hard,
        Strength::Q(q) => Strength::Q(q.powf(part)),
        Strength::U(u) => Strength::U(u * part),
        Strength::W(w) => Strength::W(w * part),
    };
    (strength.cost() != 0.0).then_some(strength)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strengths_keep_their_unit() {
        let strengths = cell_strengths(0.5, Strength::Q(0.25));
        assert_eq!(strengths, [Some(Strength::Q(0.5)), Some(Strength::Q(0.5))]);
        assert_eq!(cell_strengths(1.0, Strength::Hard), [Some(Strength::Hard), None]);
        assert_eq!(cell_strengths(0.0, Strength::U(2.0)), [None, Some(Strength::U(2.0))]);
        assert_eq!(cell_strengths(0.5, Strength::U(0.0)), [None, None]);
    }
}
