//! The programs that only read, with the options that keep them so.
//!
//! An option is here only if with it the program writes nothing, starts nothing, and reads only the files that its
//! arguments name. `crates/tools/tests/free_commands` runs every command that this permits.
//!
//! Left out on purpose, among others: `sort -o -T --compress-program`, `diff -l` (starts `pr`), `-r`, `--from-file`,
//! `file -C -f -m -p -z`, `du -L -X`, `ls -L`, `grep -R -d -D`, `date -s -f`, `tail -F`, `tree -o -l -R --info`, `rg
//! --pre -z -L`, every `--files0-from`, every `-c` of the checksums. Whole programs that print the environment (`env`,
//! `printenv`, `ps`, `set`, `export`) are not here: it contains credentials.

use super::options::Options;

/// A program that only reads.
pub(super) struct FreeProgram {
    pub(super) name: &'static str,
    pub(super) options: Options,
    pub(super) operands: Operands,
}

/// The meaning of a program's words that are no options.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// Anything: a leading dash has no other meaning.
    Words,
    /// Text; the program opens no file by it.
    Text,
    /// Files to read.
    Paths,
    /// Files to read, which must not be directories: the program would read their contents, through links.
    Files,
    /// One file to read. The program would write to a second one.
    OnePath,
    /// Files, or the current directory.
    PathsOrHere,
    /// A pattern, and then files. With one of these options all of them are files.
    PatternThenPaths(&'static [&'static str]),
    /// A format that begins with `+`. Any other operand would set the clock.
    Format,
    /// None at all.
    Nothing,
}

use Operands::{
    Files, Format, Nothing, OnePath, Paths, PathsOrHere, PatternThenPaths, Text, Words,
};

const fn program(name: &'static str, options: Options, operands: Operands) -> FreeProgram {
    FreeProgram { name, options, operands }
}

/// Options without values.
const fn plain(plain: &'static str) -> Options {
    Options { plain, ..Options::NONE }
}

/// Options without values, and some with a text.
const fn options(plain: &'static str, text: &'static str) -> Options {
    Options { plain, text, ..Options::NONE }
}

const CHECKSUM: Options = plain("bltz binary text zero tag");

pub(super) const PROGRAMS: &[FreeProgram] = &[
    program(":", Options::NONE, Words),
    program("arch", Options::NONE, Nothing),
    program("basename", options("az multiple zero", "s suffix"), Text),
    program(
        "cat",
        plain(
            "AbeEnstTuv show-all number-nonblank show-ends number squeeze-blank show-tabs \
             show-nonprinting",
        ),
        Paths,
    ),
    program(
        "cmp",
        options("bls print-bytes verbose quiet silent", "in ignore-initial bytes"),
        Paths,
    ),
    program(
        "column",
        options(
            "tdeLJx table table-noheadings table-header-repeat keep-empty-lines json fillrows",
            "nONlEHRTWripcos table-name table-order table-columns table-columns-limit \
             table-noextreme table-hide table-right table-truncate table-wrap tree tree-id \
             tree-parent output-width output-separator separator",
        ),
        Paths,
    ),
    program(
        "comm",
        options("123z check-order nocheck-order total zero-terminated", " output-delimiter"),
        Paths,
    ),
    program(
        "cut",
        options(
            "nsz only-delimited zero-terminated complement",
            "bcdf bytes characters delimiter fields output-delimiter",
        ),
        Paths,
    ),
    program(
        "date",
        Options {
            plain: "uR utc universal rfc-email debug",
            text: "d date rfc-3339",
            optional: "I iso-8601",
            path: "r reference",
        },
        Format,
    ),
    program(
        "df",
        Options {
            plain: "ahHiklPTv all human-readable si inodes local portability print-type no-sync total",
            text: "Btx block-size type exclude-type",
            optional: " output",
            path: "",
        },
        Paths,
    ),
    program(
        "diff",
        Options {
            plain: "qsceunypaitTEZbwBd brief report-identical-files normal ed rcs side-by-side \
                    left-column suppress-common-lines show-c-function expand-tabs initial-tab \
                    suppress-blank-empty ignore-case ignore-tab-expansion ignore-trailing-space \
                    ignore-space-change ignore-all-space ignore-blank-lines text strip-trailing-cr \
                    minimal speed-large-files",
            text: "CUWFILD tabsize width show-function-line ignore-matching-lines label ifdef \
                   horizon-lines palette",
            optional: " context unified color",
            path: "",
        },
        Files,
    ),
    program("dirname", plain("z zero"), Text),
    program(
        "du",
        Options {
            plain: "0abchklmPsSx null all apparent-size bytes total human-readable inodes \
                    count-links no-dereference separate-dirs si summarize one-file-system",
            text: "dtB max-depth threshold block-size exclude time-style",
            optional: " time",
            path: "",
        },
        PathsOrHere,
    ),
    program("echo", Options::NONE, Words),
    program("expand", options("i initial", "t tabs"), Paths),
    program("false", Options::NONE, Words),
    program(
        "file",
        options(
            "bEhiklLNnr0 brief no-dereference mime mime-type mime-encoding keep-going dereference \
             no-pad no-buffer raw print0 extension apple",
            "eF exclude separator",
        ),
        Paths,
    ),
    program("fold", options("bs bytes spaces", "w width"), Paths),
    program(
        "grep",
        Options {
            plain: "EFGPiyvwxcLloqsbHhnTZaIrzU0123456789 extended-regexp fixed-strings \
                    basic-regexp perl-regexp ignore-case no-ignore-case invert-match word-regexp \
                    line-regexp count files-without-match files-with-matches only-matching quiet \
                    silent no-messages byte-offset with-filename no-filename line-number \
                    initial-tab null text recursive null-data binary line-buffered",
            text: "emABC regexp max-count after-context before-context context label \
                   binary-files exclude include exclude-dir",
            optional: " color colour",
            path: "f file exclude-from",
        },
        PatternThenPaths(&["e", "regexp", "f", "file"]),
    ),
    program(
        "head",
        options("qvz0123456789 quiet silent verbose zero-terminated", "cn bytes lines"),
        Paths,
    ),
    program("hostname", Options::NONE, Nothing),
    program("id", plain("aGgnruz group groups name real user zero context"), Text),
    program(
        "join",
        options("iz ignore-case check-order nocheck-order header zero-terminated", "aejotv12"),
        Paths,
    ),
    program(
        "ls",
        Options {
            plain: "aAbBcCdDfFgGhiklmnNopqQrRsStuUvxXZ1 all almost-all author escape ignore-backups \
                    directory dired file-type full-time no-group human-readable si inode kibibytes \
                    numeric-uid-gid literal hide-control-chars show-control-chars quote-name reverse \
                    recursive size context zero group-directories-first",
            text: "ITw block-size format hide indicator-style ignore quoting-style sort time \
                   time-style tabsize width",
            optional: " color classify hyperlink",
            path: "",
        },
        PathsOrHere,
    ),
    program("md5sum", CHECKSUM, Paths),
    program(
        "nl",
        options(
            "p no-renumber",
            "bdfhilnsvw body-numbering section-delimiter footer-numbering header-numbering \
             line-increment join-blank-lines number-format number-separator starting-line-number \
             number-width",
        ),
        Paths,
    ),
    program("nproc", options(" all", " ignore"), Nothing),
    program(
        "od",
        Options {
            plain: "abcdfhilosvx output-duplicates traditional",
            text: "AjNtS address-radix skip-bytes read-bytes format",
            optional: "w width strings",
            path: "",
        },
        Paths,
    ),
    program("paste", options("sz serial zero-terminated", "d delimiters"), Paths),
    program("pwd", plain("LP logical physical"), Nothing),
    program(
        "readlink",
        plain(
            "femnqsvz canonicalize canonicalize-existing canonicalize-missing no-newline quiet \
             silent verbose zero",
        ),
        Paths,
    ),
    program(
        "realpath",
        Options {
            plain: "emLPqsz canonicalize-existing canonicalize-missing logical physical quiet \
                    strip no-symlinks zero",
            path: " relative-to relative-base",
            ..Options::NONE
        },
        Paths,
    ),
    program("rev", Options::NONE, Paths),
    program(
        "rg",
        Options {
            plain: "acFHhiIlnNopPqsSuUvwx0. count-matches count column fixed-strings with-filename \
                    no-filename ignore-case files-with-matches files-without-match files \
                    line-number no-line-number only-matching pretty pcre2 quiet case-sensitive \
                    smart-case unrestricted multiline multiline-dotall invert-match word-regexp \
                    line-regexp null null-data hidden no-hidden heading no-heading trim vimgrep \
                    json stats text crlf passthru no-ignore no-ignore-vcs no-ignore-parent \
                    no-ignore-dot no-ignore-global no-ignore-exclude no-messages \
                    no-ignore-messages no-config glob-case-insensitive max-columns-preview \
                    one-file-system type-list",
            text: "ABCEegjMmdrtT after-context before-context context encoding regexp glob iglob \
                   threads max-columns max-count max-depth max-filesize replace type type-not color \
                   colors sort sortr path-separator context-separator engine",
            optional: "",
            path: "f file",
        },
        PatternThenPaths(&["e", "regexp", "f", "file", "files", "type-list"]),
    ),
    program("seq", options("w equal-width", "fs format separator"), Text),
    program("sha1sum", CHECKSUM, Paths),
    program("sha256sum", CHECKSUM, Paths),
    program("sha512sum", CHECKSUM, Paths),
    program("sleep", Options::NONE, Text),
    program(
        "sort",
        Options {
            plain: "bdfgiMhnRrVmcCsuz ignore-leading-blanks dictionary-order ignore-case \
                    general-numeric-sort ignore-nonprinting month-sort human-numeric-sort \
                    numeric-sort random-sort reverse version-sort merge stable unique \
                    zero-terminated debug",
            text: "kSt key buffer-size field-separator sort parallel batch-size",
            optional: " check",
            path: "",
        },
        Paths,
    ),
    program("stat", options("Lft dereference file-system terse", "c format printf cached"), Paths),
    program("tac", options("br before regex", "s separator"), Paths),
    program(
        "tail",
        options(
            "fqvz0123456789 follow quiet silent verbose zero-terminated",
            "cns bytes lines pid sleep-interval",
        ),
        Paths,
    ),
    program("tr", plain("cCdst complement delete squeeze-repeats truncate-set1"), Text),
    program("true", Options::NONE, Words),
    program("tty", plain("s silent quiet"), Nothing),
    program("type", plain("afptP"), Text),
    program(
        "uname",
        plain(
            "asnrvmpio all kernel-name nodename kernel-release kernel-version machine processor \
             hardware-platform operating-system",
        ),
        Nothing,
    ),
    program("unexpand", options("a all first-only", "t tabs"), Paths),
    program(
        "uniq",
        Options {
            plain: "cdDiuz count repeated ignore-case unique zero-terminated",
            text: "fsw skip-fields skip-chars check-chars",
            optional: " all-repeated group",
            path: "",
        },
        OnePath,
    ),
    program("wc", options("cmlLw bytes chars lines max-line-length words", " total"), Paths),
    program("which", plain("a all"), Text),
    program("whoami", Options::NONE, Nothing),
];
