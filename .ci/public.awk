# The public items of source files, each with the head of its `impl`. The lint `unreachable_pub` is on, so whatever is `pub` is
# public.
#
#   awk -f .ci/public.awk src/*.rs src/walk/*.rs
FNR == 1 { in_tests = 0 }
/^#\[cfg\(test\)\]/ { in_tests = 1 }
in_tests || /^ *\/\// { next }
/^#\[(derive|non_exhaustive)/ { attributes = attributes $0 "\n"; next }

# The head of an item ends at its body or its semicolon, and may take several lines.
item == "" && /^(impl|(    )?pub [a-z])/ { item = $0; is_new = 1 }
item != "" {
    if (!is_new) { sub(/^ +/, item ~ /[(<]$/ ? "" : " "); item = item $0 }
    is_new = 0
    if (item !~ (item ~ /^pub use/ ? ";$" : "[{};]$|^    pub [a-z_]+: .*,$")) next
    if (item !~ /^pub use/) sub(/ *\{\}?$/, "", item)
    is_enum = item ~ /^pub enum/
    if (item ~ /^pub (struct|enum|trait)/) {
        split(item, words, /[ <({;:]/)
        public[words[3]]
        if (item ~ /^pub struct/) sub(/\(.*|;$/, "", item)
    }
    if (item ~ /^impl.* for /) {
        count = split(item, words, /[^A-Za-z]+/)
        for (at = 1; at <= count; at++) if (words[at] in public) { print item; break }
    } else if (item ~ /^impl/) {
        head = item
    } else {
        if (item ~ /^    / && head != "") { print head; head = "" }
        printf "%s%s\n", (item ~ /^pub/ ? attributes : ""), item
    }
    item = attributes = ""
    next
}
is_enum && /^    [A-Z]/ { print }
/^}/ { is_enum = 0; head = "" }
/^[^ #]/ { attributes = "" }
