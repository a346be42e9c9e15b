//! English words that count as one another: irregular forms, and words for the same thing. A
//! question seldom has the word that was said.

use std::sync::LazyLock;

/// Groups, apart by `;`.
const ALIKE: &str = "abort cancel; allow permit; answer reply respond; arise arose arisen; ask request query; bear \
    bore born borne; beat beaten; become became; begin began begun start launch; beginner \
    newcomer; bend bent; big large huge; bike bicycle; bite bit bitten; blow blew blown; break \
    broke broken damaged corrupt; bring brought; build built; burn burnt; buy bought purchase; \
    catch caught; change modify alter edit; child children kid; choose chose chosen pick select; \
    come came; copy duplicate; deal dealt; delete remove erase; dig dug; draw drew drawn; dream \
    dreamt; drink drank drunk; drive drove driven; eat ate eaten; enough sufficient; error failure \
    exception; fall fell fallen; fast quick rapid speedy; father dad daddy; feed fed; feel felt; \
    fight fought; find found; fix repair mend; fly flew flown; folder directory; foot feet; forbid \
    deny disallow prohibit; forget forgot forgotten; forgive forgave forgiven; freeze froze \
    frozen; get got gotten receive obtain; give gave given; grandfather grandpa; grandmother \
    grandma; grow grew grown; hang hung; happen occur; hear heard; hide hid hidden conceal; hold \
    held; house home; job career profession occupation; keep kept retain; knife knives; know knew \
    known; lay laid; lead led; learn learnt; leave left; lend lent; lie lain; life \
    lives; light lit; limit maximum cap; lose lost; make made; man men; mean meant; meet met; \
    mother mom mum mommy; mouse mice; movie film; need require; os platform; pay paid; person \
    people; photo picture image pic; put place; ram memory; ride rode ridden; ring rang rung; rise \
    rose risen; run ran; see saw seen; seek sought; sell sold; send sent transmit; set configure; \
    shake shook shaken; shine shone; shoot shot; show shown display; sing sang sung; sink sank \
    sunk; sit sat; sleep slept; slide slid; small little tiny; speak spoke spoken; spend spent; \
    stand stood; steal stole stolen; stick stuck; stop quit exit end finish terminate; swear swore \
    sworn; sweep swept; swim swam swum; take took taken; teach taught; tear tore torn; throw threw \
    thrown; tooth teeth; trip vacation holiday; understand understood; unzip decompress; wake woke \
    woken; wear wore worn; weep wept; wife wives; win won; wind wound; woman women; write wrote \
    written; wrong incorrect invalid; zip compress";

/// Of each word's term that of the first one in its group, sorted.
static FIRST: LazyLock<Vec<(u32, u32)>> = LazyLock::new(|| {
    let mut first = Vec::new();
    for group in ALIKE.split(';') {
        let mut terms = group.split_whitespace().map(super::stem::own_term);
        if let Some(of) = terms.next() {
            first.extend(terms.map(|term| (term, of)));
        }
    }
    first.sort_unstable();
    first
});

/// The term that stands for a word's and for those that count as the same.
pub(super) fn of(term: u32) -> u32 {
    let found = FIRST.binary_search_by_key(&term, |(term, _)| *term);
    found.map_or(term, |at| FIRST[at].1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::stem::own_term;
    use super::*;

    #[test]
    fn no_word_is_in_two_groups() {
        let mut groups = HashMap::new();
        for group in ALIKE.split(';') {
            for word in group.split_whitespace() {
                let other = groups.insert(own_term(word), group);
                assert!(other.is_none_or(|other| other == group), "{word}");
                assert_eq!(
                    of(own_term(word)),
                    of(own_term(group.split_whitespace().next().unwrap()))
                );
            }
        }
    }
}
