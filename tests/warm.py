"""Compile all kernels once, before several processes of tests would each compile their own.

Code that is compiled in one go and code that finds a part of it in the cache differ in the last bit, which tests that
compare two processes bit for bit would see.
"""

from tacit.cli.shared.all_kernels import compile_all

if __name__ == "__main__":
    compile_all(print)
