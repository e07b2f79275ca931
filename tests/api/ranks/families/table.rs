//! The form of the tables: names, shapes and parts.

use modeldir_fixtures::dtype_bits;

/// How many ranks hold an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    Cut,
    All,
    Kv,
    Qkv,
    ExpertCut,
    ExpertAll,
}

/// A table of the parts of a model.
#[derive(Debug)]
pub(super) struct Table {
    /// Numbers of ranks, one a column.
    pub(super) sizes: Vec<usize>,
    rows: Vec<Expanded>,
}

/// A tensor and its parts; in a table its name stands for several.
#[derive(Clone, Debug)]
pub(super) struct Expanded {
    pub(super) name: String,
    pub(super) dtype: String,
    pub(super) shape: Vec<usize>,
    /// By column.
    pub(super) parts: Vec<Part>,
    pub(super) share: Share,
}

/// The shape of a part, with the lengths of a dimension by rank where they differ.
#[derive(Clone, Debug)]
pub(super) struct Part(Vec<Vec<usize>>);

impl Part {
    /// Reads `23*3:21x16`.
    fn parse(text: &str) -> Self {
        let lens = |run: &str| match run.split_once('*') {
            Some((len, times)) => vec![number(len); number(times)],
            None => vec![number(run)],
        };
        Self(text.split('x').map(|dim| dim.split(':').flat_map(lens).collect()).collect())
    }

    pub(super) fn of_rank(&self, rank: usize) -> Vec<usize> {
        self.0.iter().map(|lens| lens[if lens.len() == 1 { 0 } else { rank }]).collect()
    }
}

impl Table {
    pub(super) fn parse(text: &str) -> Self {
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let header = lines.next().expect("a line of columns");
        let [_, _, _, sizes @ .., _] = &header[..] else { unreachable!("five columns or more") };
        let sizes = sizes.iter().map(|size| number(size.trim_start_matches("tp"))).collect();
        Self { sizes, rows: lines.map(|line| Expanded::parse(&line)).collect() }
    }

    /// The tensors with these layers and so many experts, by name.
    pub(super) fn expand(&self, layers: &[usize], experts: usize) -> Vec<Expanded> {
        let mut tensors = Vec::new();
        for row in &self.rows {
            let layers = if row.name.contains("{l}") { layers } else { &layers[..1] };
            let experts = if row.name.contains("{e}") { experts } else { 1 };
            for (layer, expert) in layers.iter().flat_map(|l| (0..experts).map(move |e| (l, e))) {
                let name = row.name.replace("{l}", &layer.to_string());
                let name = name.replace("{e}", &expert.to_string());
                tensors.push(Expanded { name, ..row.clone() });
            }
        }
        tensors
    }
}

impl Expanded {
    fn parse(columns: &[&str]) -> Self {
        let [name, dtype, shape, parts @ .., share] = columns else {
            unreachable!("five columns or more: {columns:?}")
        };
        let share = match *share {
            "cut" => Share::Cut,
            "all" => Share::All,
            "kv" => Share::Kv,
            "qkv" => Share::Qkv,
            "expert-cut" => Share::ExpertCut,
            "expert-all" => Share::ExpertAll,
            other => unreachable!("{other}"),
        };
        Self {
            name: (*name).to_owned(),
            dtype: (*dtype).to_owned(),
            shape: Part::parse(shape).of_rank(0),
            parts: parts.iter().map(|part| Part::parse(part)).collect(),
            share,
        }
    }

    pub(super) const fn is_of_expert(&self) -> bool {
        matches!(self.share, Share::ExpertCut | Share::ExpertAll)
    }

    pub(super) fn byte_len(&self) -> u64 {
        let bits = dtype_bits(&self.dtype).expect("a dtype of the format");
        (self.shape.iter().product::<usize>() * bits / 8) as u64
    }
}

fn number(text: &str) -> usize {
    text.parse().expect("a number")
}
