//! Pages of a PDF that say nothing as text, since they are scanned: which they may be, and what stands in their place.

use super::PAGE_BREAK;
use crate::readability::unreadable_percent;

/// In the place of a page that is an image.
const NOTE: &str = "(This page is scanned. It is an image.)";

/// In the place of a scanned page that is no image of the message.
const LEFT_OUT: &str = "(This page is scanned, and could not be read.)";

/// Whether a text has no letter: that of a PDF whose pages are images.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || c.is_control())
}

/// Pages without text, or with text that no font explains. Counted from 1.
pub fn unreadable_pages(text: &str) -> Vec<u32> {
    let pages = (1..).zip(text.split(PAGE_BREAK));
    let is_unreadable = |page: &str| is_blank(page) || unreadable_percent(page).is_some();
    pages.filter(|(_, page)| is_unreadable(page)).map(|(number, _)| number).collect()
}

/// The text with notes in the place of scanned pages: of those that are `images`, and of blank ones that were `left_out`.
pub fn with_notes(text: &str, images: &[u32], left_out: &[u32]) -> String {
    let pages = (1..).zip(text.split(PAGE_BREAK)).map(|(number, page)| match page {
        _ if images.contains(&number) => NOTE,
        page if is_blank(page) && left_out.contains(&number) => LEFT_OUT,
        page => page,
    });
    pages.collect::<Vec<_>>().join(&PAGE_BREAK.to_string())
}

/// Whether a text with notes has a page beside them.
pub fn has_text(noted: &str) -> bool {
    noted.split(PAGE_BREAK).any(|page| !is_blank(page) && page != NOTE && page != LEFT_OUT)
}

/// Scanned pages of a text with notes that are no images of the message.
pub fn count_left_out(noted: &str) -> usize {
    noted.split(PAGE_BREAK).filter(|page| *page == LEFT_OUT).count()
}

/// What an image is called that is a page of a file.
pub fn page_name(number: u32, file: &str) -> String {
    format!("page {number} of {file}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_say_nothing_get_notes() {
        let text = "One\u{c}\u{c}\u{fffd}\u{fffd}\u{fffd}\u{c} \n\u{c}Five";
        assert_eq!(unreadable_pages(text), [2, 3, 4]);
        let noted = with_notes(text, &[2, 3], &[4]);
        assert_eq!(noted, format!("One\u{c}{NOTE}\u{c}{NOTE}\u{c}{LEFT_OUT}\u{c}Five"));
        assert_eq!(with_notes(text, &[], &[3]), text);
        assert_eq!((has_text(&noted), count_left_out(&noted)), (true, 1));
        assert!(!has_text(&with_notes("\u{c} \u{c}", &[1], &[3])));
        assert_eq!((is_blank("\u{c} \n"), is_blank("a"), unreadable_pages("")), (true, false, vec![1]));
    }
}
