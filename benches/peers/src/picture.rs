//! Draws a bar chart of ratios to the bare loop, as an SVG that is legible on white and on black.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;

pub struct Picture {
    pub title: &'static str,
    /// The file system and the machine.
    pub place: String,
    pub legend: &'static str,
    /// The name of the contender whose ratio is 1.
    pub base: &'static str,
    pub groups: Vec<Group>,
}

/// A group of bars under one heading.
pub struct Group {
    heading: String,
    /// The names and ratios.
    bars: Vec<(&'static str, f64)>,
}

impl Group {
    /// Creates a group and sorts its bars: `lendir` first, then the others by their ratios.
    pub fn new(heading: &str, bars: &[(&'static str, f64)]) -> Self {
        let mut bars = bars.to_vec();
        bars.sort_by(|a, b| is_ours(b.0).cmp(&is_ours(a.0)).then(a.1.total_cmp(&b.1)));
        Self { heading: heading.into(), bars }
    }
}

fn is_ours(name: &str) -> bool {
    name.starts_with("lendir")
}

// The text has a contrast of more than 4 to 1, on white and on GitHub's black.
const TEXT: RGBColor = RGBColor(0x76, 0x7d, 0x87);
const KERNEL: RGBColor = RGBColor(0x9a, 0xa3, 0xad);
const ADDED: RGBColor = RGBColor(0xdb, 0x6d, 0x28);
const OURS: RGBColor = RGBColor(0x2f, 0x81, 0xf7);

const WIDTH: u32 = 780;
const ROW: u32 = 24;
const HEAD: u32 = 110;
const FOOT: u32 = 36;
/// The width of the names.
const NAMES: u32 = 236;
/// The width of the figure after the longest bar.
const FIGURE: u32 = 56;
const MARGIN: i32 = 16;

impl Picture {
    pub fn svg(&self) -> Result<String, Box<dyn Error>> {
        // Each group has a heading, and a gap before the next one.
        let rows = self.groups.iter().map(|group| group.bars.len() + 2).sum::<usize>() - 1;
        let rows = u32::try_from(rows)?;
        let mut svg = String::new();
        let root = SVGBackend::with_string(&mut svg, (WIDTH, HEAD + ROW * rows + FOOT))
            .into_drawing_area();
        let write = |text: &str, at, color: RGBColor, size: u32, style, h_pos| {
            let font = ("sans-serif", size)
                .into_font()
                .style(style)
                .color(&color)
                .pos(Pos::new(h_pos, VPos::Center));
            root.draw_text(text, &font, at)
        };

        let longest =
            self.groups.iter().flat_map(|group| &group.bars).map(|bar| bar.1).fold(1.0, f64::max);
        let mut chart = ChartBuilder::on(&root)
            .margin_top(HEAD)
            .margin_left(NAMES)
            .margin_right(FIGURE)
            .x_label_area_size(FOOT)
            .build_cartesian_2d(0.0..longest, f64::from(rows)..0.0)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_labels(6)
            .x_label_formatter(&|ratio| format!("{ratio:.1}"))
            .x_label_style(("sans-serif", 15).into_font().color(&TEXT))
            .bold_line_style(TEXT.mix(0.25))
            .light_line_style(TRANSPARENT)
            .axis_style(TEXT.mix(0.25))
            .draw()?;

        let mut y = 0.5;
        for Group { heading, bars } in &self.groups {
            let at = chart.backend_coord(&(0.0, y));
            write(heading, (MARGIN, at.1), TEXT, 18, FontStyle::Bold, HPos::Left)?;
            for (name, ratio) in bars {
                y += 1.0;
                let ours = is_ours(name);
                let (kernel, color, style) = if ours {
                    (OURS, OURS, FontStyle::Bold)
                } else {
                    (KERNEL, TEXT, FontStyle::Normal)
                };
                let bar = |from, to, color: RGBColor| {
                    Rectangle::new([(from, y - 0.36), (to, y + 0.36)], color.filled())
                };
                chart.draw_series([bar(0.0, ratio.min(1.0), kernel)])?;
                if *ratio > 1.0 {
                    chart.draw_series([bar(1.0, *ratio, ADDED)])?;
                }
                let [begin, end] = [0.0, ratio.max(1.0)].map(|x| chart.backend_coord(&(x, y)));
                write(name, (begin.0 - 10, begin.1), color, 17, style, HPos::Right)?;
                write(&format!("{ratio:.2}"), (end.0 + 8, end.1), color, 17, style, HPos::Left)?;
            }
            y += 2.0;
        }

        chart.draw_series(DashedLineSeries::new(
            [(1.0, 0.0), (1.0, f64::from(rows))],
            4,
            4,
            TEXT.stroke_width(2),
        ))?;
        let line = chart.backend_coord(&(1.0, 0.0));
        write(
            &format!("1.0 = the {}", self.base),
            (line.0, line.1 - 10),
            TEXT,
            15,
            FontStyle::Normal,
            HPos::Center,
        )?;
        write(self.title, (MARGIN, 20), TEXT, 24, FontStyle::Bold, HPos::Left)?;
        write(&self.place, (MARGIN, 46), TEXT, 15, FontStyle::Normal, HPos::Left)?;
        write(self.legend, (MARGIN, 68), TEXT, 15, FontStyle::Normal, HPos::Left)?;
        root.present()?;
        drop((chart, root)); // which borrow it
        Ok(svg)
    }
}
