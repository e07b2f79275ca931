//! Rectangles with areas in proportion to sizes, each as square as possible.
//!
//! The algorithm is that of Bruls, Huizing and van Wijk, "Squarified Treemaps" (2000): rectangles
//! are put in rows along the shorter side, and a row ends when one more would make the longest of
//! its rectangles longer.

/// A rectangle: its corner, width and height.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Rect {
    /// The rectangle without a margin, and without a strip at its top.
    pub(super) fn inside(self, margin: f64, top: f64) -> Self {
        let (x, y) = (self.x + margin, self.y + top);
        let width = (self.width - 2.0 * margin).max(0.0);
        Self { x, y, width, height: (self.height - top - margin).max(0.0) }
    }
}

/// Divides an area among sizes, which are positive and in descending order.
pub(super) fn squarify(sizes: &[f64], area: Rect) -> Vec<Rect> {
    let total: f64 = sizes.iter().sum();
    let scale = area.width * area.height / total.max(f64::MIN_POSITIVE);
    let sizes: Vec<f64> = sizes.iter().map(|size| size * scale).collect();
    let (mut rects, mut rest, mut left) = (Vec::with_capacity(sizes.len()), &sizes[..], area);
    while !rest.is_empty() {
        let side = left.width.min(left.height);
        let (row, after) = rest.split_at(row_len(rest, side));
        left = place(row, left, &mut rects);
        rest = after;
    }
    rects
}

/// The number of sizes in the next row along a side.
fn row_len(sizes: &[f64], side: f64) -> usize {
    let (mut sum, mut worst) = (0.0, f64::INFINITY);
    for (number, size) in sizes.iter().enumerate() {
        sum += size;
        // The longest of the row is its first or its last, since sizes descend.
        let ratio = |size: f64| {
            let ratio = side * side * size / (sum * sum);
            ratio.max(1.0 / ratio)
        };
        let next = ratio(sizes[0]).max(ratio(*size));
        if number > 0 && next > worst {
            return number;
        }
        worst = next;
    }
    sizes.len()
}

/// Puts a row along the shorter side, and returns the remaining area.
fn place(row: &[f64], area: Rect, rects: &mut Vec<Rect>) -> Rect {
    let sum: f64 = row.iter().sum();
    let is_wide = area.width >= area.height;
    let side = if is_wide { area.height } else { area.width };
    let depth = if side > 0.0 { sum / side } else { 0.0 };
    let mut at = 0.0;
    for size in row {
        let len = if depth > 0.0 { size / depth } else { 0.0 };
        rects.push(if is_wide {
            Rect { x: area.x, y: area.y + at, width: depth, height: len }
        } else {
            Rect { x: area.x + at, y: area.y, width: len, height: depth }
        });
        at += len;
    }
    if is_wide {
        Rect { x: area.x + depth, width: (area.width - depth).max(0.0), ..area }
    } else {
        Rect { y: area.y + depth, height: (area.height - depth).max(0.0), ..area }
    }
}

#[cfg(test)]
mod tests {
    use super::{Rect, squarify};

    #[test]
    fn areas_are_as_the_sizes_and_fill_the_whole() {
        let area = Rect { x: 10.0, y: 20.0, width: 600.0, height: 400.0 };
        let sizes = [6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0];
        let rects = squarify(&sizes, area);
        for (rect, size) in rects.iter().zip(sizes) {
            assert!((rect.width * rect.height - size * 10_000.0).abs() < 1e-3, "{rect:?}");
            let ratio = (rect.width / rect.height).max(rect.height / rect.width);
            assert!(ratio < 3.1, "{rect:?}");
            assert!(rect.x >= 10.0 && rect.x + rect.width <= 610.001, "{rect:?}");
            assert!(rect.y >= 20.0 && rect.y + rect.height <= 420.001, "{rect:?}");
        }
        for (one, a) in rects.iter().enumerate() {
            for b in &rects[one + 1..] {
                let apart = a.x + a.width <= b.x + 1e-6
                    || b.x + b.width <= a.x + 1e-6
                    || a.y + a.height <= b.y + 1e-6
                    || b.y + b.height <= a.y + 1e-6;
                assert!(apart, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn no_area_and_no_sizes_are_no_trouble() {
        let none = Rect { x: 0.0, y: 0.0, width: 0.0, height: 0.0 };
        assert_eq!(squarify(&[], none), []);
        let rects = squarify(&[2.0, 1.0], none);
        assert!(rects.iter().all(|r| r.width == 0.0 || r.height == 0.0), "{rects:?}");
    }
}
