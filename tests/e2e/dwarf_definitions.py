#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Definition sites against the source text: file, line and, from gcc, column of every function.

The sources are written here, a few dozen functions of each kind, and searched again for the places
where their names are defined. Each compiler builds them; every function of theirs must be found in
the symbol table or in an inline chain, and be defined where the text says.
"""
import os
import re
import shutil
import subprocess

from libe2e import Skip, long, main

SCRATCH = os.environ["SCRATCH"]
RESOLVE = os.path.join(os.environ.get("BUILD", "build"), "tests/e2e/resolve")
EACH = 8
LEAST = 50

HEADER = """
#define NOINLINE __attribute__((noinline))
#define INLINE inline __attribute__((always_inline))
template <typename F> NOINLINE int run(F f, int x) { return f(x) + f(x + 1); }
extern volatile int sink;
"""

# A § is where the definition is, by gcc's columns: before the name with its qualifiers; a lambda's is behind
# its captures. The marks are taken out.
KINDS_CXX = {
    "free": "NOINLINE int\n§df_free_{n}(int x)\n{{\n\treturn x * {n} + sink;\n}}\n",
    "declared": "static NOINLINE int df_declared_{n}(int);\n\n\n"
                "static NOINLINE int §df_declared_{n}(int x)\n{{\n\treturn x * {n} + sink;\n}}\n",
    "anonymous": "namespace {{\nNOINLINE int §df_anonymous_{n}(int x) {{ return x + sink * {n}; }}\n}}\n",
    "space": "namespace outer {{ namespace inner {{\n"
             "  NOINLINE int §df_space_{n}(int x) {{ return x + sink * {n}; }}\n}} }}\n",
    "inclass": "struct in_{n} {{\n\tint f;\n\n\tNOINLINE int §df_inclass_{n}(int x) {{ return x + f; }}\n}};\n",
    "outclass": "struct out_{n} {{\n\tint f;\n\tint df_outclass_{n}(int x) const;\n}};\n\n"
                "NOINLINE int §out_{n}::df_outclass_{n}(int x) const {{ return x * f; }}\n",
    "virtual": "struct virtual_{n} {{\n\tvirtual ~virtual_{n}() {{}}\n\tint f;\n"
               "\tvirtual NOINLINE int §df_virtual_{n}(int x) {{ return x - f; }}\n}};\n",
    "static": "struct static_{n} {{\n\tstatic int df_static_{n}(int);\n}};\n"
              "NOINLINE int §static_{n}::df_static_{n}(int x) {{ return x ^ sink; }}\n",
    "template": "template <typename T, int N>\nNOINLINE T\n  §df_template_{n}(T x)\n{{\n\treturn x * N + sink;\n}}\n",
    "tclass": "template <typename T> struct tclass_{n} {{\n\tT f;\n\tT df_tclass_{n}(T x);\n}};\n\n"
              "template <typename T> NOINLINE T §tclass_{n}<T>::df_tclass_{n}(T x) {{ return x + f; }}\n",
    "inlined": "static INLINE int §df_inlined_{n}(int x)\n{{\n\treturn sink / (x + {n});\n}}\n",
    "lambda": "NOINLINE int use_lambda_{n}(int v)\n{{\n\tauto df_lambda_{n} = [v§](int x) NOINLINE\n"
              "\t{{ return x * v + sink; }};\n\treturn run(df_lambda_{n}, v);\n}}\n",
}

CALLS_CXX = {
    "free": "df_free_{n}(v)", "declared": "df_declared_{n}(v)", "anonymous": "df_anonymous_{n}(v)",
    "space": "outer::inner::df_space_{n}(v)", "inclass": "in_{n}{{v}}.df_inclass_{n}(v)",
    "outclass": "out_{n}{{v}}.df_outclass_{n}(v)",
    "virtual": "pick<virtual_{n}>(v)->df_virtual_{n}(v)", "static": "static_{n}::df_static_{n}(v)",
    "template": "df_template_{n}<long, {n}>(v)", "tclass": "tclass_{n}<long>{{v}}.df_tclass_{n}(v)",
    "inlined": "df_inlined_{n}(v)", "lambda": "use_lambda_{n}(v)",
}

KINDS_RUST = {
    "free": "#[inline(never)]\n\npub fn §df_free_{n}(\n    x: u32) -> u32 {{\n    x * {n} + sink() + 17\n}}\n",
    "method": "pub struct S{n} {{ pub f: u32 }}\nimpl S{n} {{\n    #[inline(never)]\n"
              "    pub fn §df_method_{n}(&self, x: u32) -> u32 {{ (x << {n}) + self.f + sink() }}\n}}\n",
    "trait": "pub trait T{n} {{ fn df_trait_{n}(&self) -> u32; }}\nimpl T{n} for u32 {{\n"
             "    #[inline(never)]\n    fn §df_trait_{n}(&self) -> u32 {{ *self + sink() + {n} }}\n}}\n",
    "generic": "#[inline(never)]\npub fn §df_generic_{n}<T: Into<u32>>(x: T) -> u32 {{\n"
               "    x.into() * {n} + sink() + 23\n}}\n",
    "inlined": "#[inline(always)]\npub fn §df_inlined_{n}(x: u32) -> u32 {{ sink() / (x + {n}) }}\n",
    "module": "pub mod m{n} {{\n    #[inline(never)]\n"
              "    pub fn §df_module_{n}(x: u32) -> u32 {{ x ^ super::sink() ^ {n} }}\n}}\n",
    "enum": "pub enum E{n} {{ A, B }}\nimpl E{n} {{\n    #[inline(never)]\n"
            "    pub fn §df_enum_{n}(&self) -> u32 {{\n        match self {{ E{n}::A => sink(), E{n}::B => {n} }}\n    }}\n}}\n",
}

CALLS_RUST = {
    "free": "df_free_{n}(v)", "method": "S{n} {{ f: v }}.df_method_{n}(v)", "trait": "v.df_trait_{n}()",
    "generic": "df_generic_{n}::<u32>(v)", "inlined": "df_inlined_{n}(v)",
    "module": "m{n}::df_module_{n}(v)", "enum": "(if v > 3 {{ E{n}::A }} else {{ E{n}::B }}).df_enum_{n}()",
}


def marked(text, path, sites):
    """Take the marks out; sites[name] = (file, line, column)."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        at = line.find("§")
        if at < 0:
            continue
        name = re.search(r"df_[a-z]+_\d+", line[at:] if "lambda" not in line else line)[0]
        assert name not in sites, name
        sites[name] = (path, number, at + 1)
        lines[number - 1] = line.replace("§", "")
    return "\n".join(lines)


def write(name, text, sites):
    path = os.path.join(SCRATCH, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(marked(text, path, sites))
    return path


def cxx_sources(sites):
    """Two units and a header, so that LTO has something to move."""
    os.makedirs(os.path.join(SCRATCH, "include"), exist_ok=True)
    header = HEADER + "".join(KINDS_CXX[kind].format(n=n) for kind in ("inlined", "inclass", "template", "tclass")
                              for n in range(1, EACH + 1))
    write("include/kinds.h", header, sites)
    rest = [kind for kind in KINDS_CXX if kind not in ("inlined", "inclass", "template", "tclass")]
    body = '#include "../sources/../include/kinds.h"\n' + \
        "template <typename T> NOINLINE T *pick(int v) { T *p = new T; p->f = v; return p; }\n" + \
        "".join(KINDS_CXX[kind].format(n=n) for kind in rest for n in range(1, EACH + 1))
    calls = "".join("\tr += " + call.format(n=n) + ";\n" for call in CALLS_CXX.values()
                    for n in range(1, EACH + 1))
    os.makedirs(os.path.join(SCRATCH, "sources"), exist_ok=True)
    write("sources/a.cc", body + "NOINLINE long everything(int v)\n{\n\tlong r = 0;\n" + calls +
          "\treturn r;\n}\n", sites)
    write("sources/b.cc", "volatile int sink = 3;\nextern long everything(int v);\n"
          "int main(int argc, char **)\n{\n\treturn everything(argc) & 1;\n}\n", sites)


def rust_source(sites):
    body = "use std::sync::atomic::{AtomicU32, Ordering};\nstatic SINK: AtomicU32 = AtomicU32::new(3);\n" \
           "#[inline(never)]\npub fn sink() -> u32 { SINK.fetch_add(1, Ordering::SeqCst) }\n"
    body += "".join(text.format(n=n) for text in KINDS_RUST.values() for n in range(1, EACH + 1))
    calls = "".join("    r ^= " + call.format(n=n) + ";\n" for call in CALLS_RUST.values()
                    for n in range(1, EACH + 1))
    body += "fn main() {\n    let v = sink();\n    let mut r = 0;\n" + calls + \
            "    std::process::exit((r & 1) as i32);\n}\n"
    return write("kinds.rs", body, sites)


def functions_of(program):
    """Every address at which some function may start or be inlined: all of the text, coarsely."""
    out = subprocess.run(["nm", "--defined-only", "-S", program], capture_output=True, text=True, check=True)
    addresses = set()
    for line in out.stdout.splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[2] in "tTwW" and re.search(r"df_|use_|everything|main", fields[3]):
            start, size = int(fields[0], 16), int(fields[1], 16)
            addresses.update(range(start, start + size))
    return sorted(addresses)


def found_sites(program):
    """name -> set of (file, line, column), from every level of every chain.

    gcc gives lambdas no linkage name: the symbol table has it, and the module takes it from there.
    """
    addresses = functions_of(program)
    result = subprocess.run([RESOLVE, program], input="".join(f"{a:x}\n" for a in addresses),
                            capture_output=True, text=True, check=True)
    found, site = {}, None
    for line in result.stdout.splitlines():
        fields = line.split("\t")
        if fields[0] == "D":
            site = (fields[5], int(fields[6]), int(fields[7]))
            name = key_of(fields[1])
        elif fields[0] == "M" and "{lambda" in fields[1]:
            name = key_of(fields[1])
        else:
            continue
        if name and site:
            found.setdefault(name, set()).add(site)
    return found


def key_of(linkage):
    """Which function of ours a name is; a lambda goes by the function around it."""
    lambdas = re.match(r"_ZZN?\d*use_lambda_(\d+).*clE|use_lambda_(\d+)\(int\)::\{lambda[^{}]*\}::operator",
                       linkage)
    if lambdas:
        return "df_lambda_" + (lambdas[1] or lambdas[2])
    match = re.search(r"(df_[a-z]+_\d+)", linkage)
    return match[1] if match else None


def compare(what, program, sites, columns):
    found = found_sites(program)
    missing = sorted(set(sites) - set(found))
    assert not missing, f"{what}: not found: {missing}"
    wrong = []
    for name, (path, line, column) in sorted(sites.items()):
        for site in found[name]:
            if site[:2] != (path, line) or (columns and site[2] != column):
                wrong.append((name, (path, line, column), site))
    print(f"{what:12} {len(sites)} functions, {len(wrong)} differ" + (", with columns" if columns else ""))
    for row in wrong[:8]:
        print("  ", *row)
    assert len(sites) >= LEAST, f"{what}: only {len(sites)} compared"
    return len(wrong)


def build(program, *command):
    result = subprocess.run(command, cwd=os.path.join(SCRATCH, "sources"), capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return program


def compare_cxx(builds):
    sites, wrong = {}, 0
    cxx_sources(sites)
    for compiler, name, flags in builds:
        program = os.path.join(SCRATCH, name)
        # equal functions stay apart
        apart = ["-fno-ipa-icf"] if compiler == "g++" else []
        build(program, compiler, "-std=c++17", "-O2", "-g", *apart, *flags, "-o", program, "a.cc", "b.cc")
        wrong += compare(name, program, sites, compiler == "g++")
    assert not wrong, f"{wrong} definitions are elsewhere"


def test_dwarf_5():
    compare_cxx([("g++", "gcc-5", ["-gdwarf-5"]), ("clang++", "clang-5", ["-gdwarf-5"])])


@long
def test_dwarf_4():
    compare_cxx([("g++", "gcc-4", ["-gdwarf-4"]), ("clang++", "clang-4", ["-gdwarf-4"])])


@long
def test_split_and_link_time():
    compare_cxx([("g++", "gcc-lto", ["-flto"]), ("g++", "gcc-split", ["-gsplit-dwarf"]),
                 ("clang++", "clang-split", ["-gdwarf-5", "-gsplit-dwarf"])])


@long
def test_rust():
    if not shutil.which("rustc"):
        raise Skip("rustc is not installed")
    sites = {}
    source, program = rust_source(sites), os.path.join(SCRATCH, "rust")
    build(program, "rustc", "-O", "-g", "-C", "codegen-units=1", "-C", "symbol-mangling-version=v0", "-o", program, source)
    wrong = compare("rustc", program, sites, False)
    assert not wrong, f"{wrong} definitions are elsewhere"


if __name__ == "__main__":
    main(globals())
