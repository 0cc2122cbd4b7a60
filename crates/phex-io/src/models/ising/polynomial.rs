//! Polynomials of degree two, in spins or in 0/1 variables, and their Ising form.
//!
//! With `x = (1 + y) / 2`: `w x = w/2 + (w/2) y` and `w x_a x_b = (w/4)(1 + y_a + y_b + y_a y_b)`.

use phex::model::Ising;

/// The values of the variables of a polynomial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variables {
    /// −1 and +1.
    Spin,
    /// 0 and 1.
    Binary,
}

/// Terms in any order; terms of the same variables are summed.
#[derive(Debug, Clone)]
pub(super) struct Polynomial {
    pub(super) variables: Variables,
    pub(super) linear: Vec<f64>,
    pub(super) pairs: Vec<(usize, usize, f64)>,
    pub(super) offset: f64,
}

impl Polynomial {
    pub(super) fn new(variables: Variables, n: usize) -> Polynomial {
        Polynomial { variables, linear: vec![0.0; n], pairs: Vec::new(), offset: 0.0 }
    }

    /// Adds `value · a · b`, or `value · a` where both are the same variable.
    pub(super) fn add(&mut self, a: usize, b: usize, value: f64) {
        if a == b {
            self.linear[a] += value;
        } else {
            self.pairs.push((a.min(b), a.max(b), value));
        }
    }

    /// The 0/1 polynomial of an Ising model.
    pub(super) fn binary(ising: &Ising) -> Polynomial {
        let mut sum = Polynomial::new(Variables::Binary, ising.h.len());
        sum.offset = ising.offset;
        for (at, h) in ising.h.iter().enumerate() {
            sum.linear[at] += 2.0 * h;
            sum.offset -= h;
        }
        for &(a, b, j) in &ising.j {
            sum.linear[a] -= 2.0 * j;
            sum.linear[b] -= 2.0 * j;
            sum.offset += j;
            sum.add(a, b, 4.0 * j);
        }
        sum
    }

    pub(super) fn into_ising(mut self, names: Vec<String>) -> Ising {
        // The sort is stable, so that sums depend only on the order in the file.
        self.pairs.sort_by_key(|&(a, b, _)| (a, b));
        self.pairs.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 += next.2;
            }
            same
        });
        if self.variables == Variables::Spin {
            return Ising { names, h: self.linear, j: self.pairs, offset: self.offset };
        }
        let mut h: Vec<f64> = self.linear.iter().map(|value| value / 2.0).collect();
        let mut offset = self.offset + h.iter().sum::<f64>();
        for (a, b, value) in &mut self.pairs {
            *value /= 4.0;
            h[*a] += *value;
            h[*b] += *value;
            offset += *value;
        }
        Ising { names, h, j: self.pairs, offset }
    }
}
