"""Files that are no sound GGUF: one clear line each, at once, and never a traceback."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from breakeven.errors import InputError
from breakeven.messages import text
from breakeven.origin.gguf import load_gguf
from breakeven.origin.gguf_head import read_head
from breakeven.origin.model_source import load_model


def text_of(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def sound(path: Path) -> bytes:
    """A whole tiny model, written by the gguf library."""
    writer = GGUFWriter(path, "llama")
    for key, value in {"block_count": 1, "embedding_length": 8, "attention.head_count": 2, "attention.head_count_kv": 1}.items():
        writer.add_uint32(f"llama.{key}", value)
    writer.add_array("tokenizer.ggml.tokens", [f"token {index}" for index in range(16)])
    shapes = {"token_embd": (16, 8), "blk.0.attn_q": (8, 8), "blk.0.attn_k": (4, 8), "blk.0.attn_v": (4, 8), "blk.0.ffn_up": (8, 8)}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", np.zeros(shape, np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return sound(tmp_path_factory.mktemp("whole") / "a.gguf")


def refused(path: Path) -> str:
    with pytest.raises(InputError) as fault:
        load_gguf(path)
    english, chinese = (text(fault.value.message, language) for language in ("en", "zh"))  # type: ignore[arg-type]
    assert "\n" not in english + chinese
    assert "{" not in english + chinese
    return english


HEAD = b"GGUF" + struct.pack("<I", 3)
DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "nothing": (lambda whole: b"", "does not begin with GGUF"),
    "a page of HTML": (lambda whole: b"<!DOCTYPE html>" * 10, "does not begin with GGUF"),
    "safetensors": (lambda whole: struct.pack("<Q", 100) + b'{"a":{}}', "does not begin with GGUF"),
    "a pointer": (lambda whole: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n", "git lfs pull"),
    "four bytes": (lambda whole: b"GGUF", "cut short"),
    "version 1": (lambda whole: b"GGUF" + struct.pack("<I", 1) + whole[8:], "version 1"),
    "version 77": (lambda whole: b"GGUF" + struct.pack("<I", 77) + whole[8:], "version 77"),
    "big-endian": (lambda whole: b"GGUF" + struct.pack(">I", 3) + whole[8:], "big-endian"),
    "2^63 tensors": (lambda whole: HEAD + struct.pack("<QQ", 2**63, 1) + whole[24:], "damaged at byte"),
    "2^63 keys": (lambda whole: HEAD + struct.pack("<QQ", 1, 2**63) + whole[24:], "damaged at byte"),
    "half of it": (lambda whole: whole[: len(whole) // 2], "cut short"),
    "all but a byte of it": (lambda whole: whole[:-1], "cut short"),
    "a name of 2^62 bytes": (lambda whole: HEAD + struct.pack("<QQ", 0, 1) + struct.pack("<Q", 2**62) + b"a" * 64, "damaged at byte"),
    "a name that is no text": (lambda whole: HEAD + struct.pack("<QQQ", 0, 1, 4) + b"\xff\xfe\xff\xfe" + b"\0" * 64, "damaged at byte"),
    "a list of 2^40 numbers": (
        lambda whole: HEAD + struct.pack("<QQ", 0, 1) + text_of("a") + struct.pack("<IIQ", 9, 4, 2**40) + b"\0" * 64,
        "damaged at byte",
    ),
    "9 million texts that are not there": (
        lambda whole: HEAD + struct.pack("<QQ", 0, 1) + text_of("a") + struct.pack("<IIQ", 9, 8, 9_000_000) + b"\0" * 64,
        "cut short",
    ),
    "a list of lists": (
        lambda whole: HEAD + struct.pack("<QQ", 0, 1) + text_of("a") + struct.pack("<IIQ", 9, 9, 2) + b"\0" * 64,
        "damaged at byte",
    ),
    "one key twice": (lambda whole: HEAD + struct.pack("<QQ", 0, 2) + (text_of("a") + struct.pack("<II", 4, 1)) * 2, "damaged at byte"),
    "a tensor of no size": (
        lambda whole: HEAD + struct.pack("<QQ", 1, 0) + text_of("a") + struct.pack("<IQIQ", 1, 0, 0, 0) + b"\0" * 64,
        "damaged at byte",
    ),
    "a tensor of more than there can be": (
        lambda whole: HEAD + struct.pack("<QQ", 1, 0) + text_of("a") + struct.pack("<IQQIQ", 2, 2**40, 2**40, 0, 0) + b"\0" * 64,
        "damaged at byte",
    ),
    "a tensor of type 999": (
        lambda whole: HEAD + struct.pack("<QQ", 1, 0) + text_of("a") + struct.pack("<IQIQ", 1, 8, 999, 0) + b"\0" * 64,
        "type number 999",
    ),
    "an alignment of 3": (
        lambda whole: HEAD + struct.pack("<QQ", 0, 1) + text_of("general.alignment") + struct.pack("<II", 4, 3),
        "general.alignment = 3",
    ),
    "no architecture": (lambda whole: HEAD + struct.pack("<QQ", 0, 0), "no general.architecture"),
    "an architecture of its own": (
        lambda whole: HEAD + struct.pack("<QQ", 0, 1) + text_of("general.architecture") + struct.pack("<I", 8) + text_of("wizard"),
        "architecture wizard is not modelled",
    ),
    "a projector": (
        lambda whole: HEAD + struct.pack("<QQ", 0, 1) + text_of("general.architecture") + struct.pack("<I", 8) + text_of("clip"),
        "vision projector",
    ),
    "an adapter": (
        lambda whole: HEAD + struct.pack("<QQ", 0, 1) + text_of("general.type") + struct.pack("<I", 8) + text_of("adapter"),
        "general.type is adapter",
    ),
    "a key that is no number": (lambda whole: whole.replace(struct.pack("<II", 4, 8), struct.pack("<If", 6, 8.0), 1), "embedding_length"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_file_that_is_no_sound_gguf_is_refused_in_one_line(tmp_path: Path, whole: bytes, name: str) -> None:
    damage, says = DAMAGE[name]
    path = tmp_path / "a.gguf"
    path.write_bytes(damage(whole))
    assert says in refused(path)


def test_what_is_no_file_is_refused_in_one_line(tmp_path: Path, whole: bytes) -> None:
    assert "no such file" in refused(tmp_path / "absent.gguf")
    (tmp_path / "folder.gguf").mkdir()
    assert "not a file" in refused(tmp_path / "folder.gguf")
    (tmp_path / "loop.gguf").symlink_to(tmp_path / "loop.gguf")
    assert "cannot be read" in refused(tmp_path / "loop.gguf")
    os.mkfifo(tmp_path / "pipe.gguf")
    assert "not a file" in refused(tmp_path / "pipe.gguf")
    for name in ("nul\0.gguf", f"{'a' * 5000}.gguf"):
        assert "cannot be read" in refused(Path(name))
    assert "no such file" in refused(Path(f"{'a' * 5000}-00001-of-00002.gguf"))
    (tmp_path / "mmproj-model-f16.gguf").write_bytes(whole)
    assert "vision projector" in refused(tmp_path / "mmproj-model-f16.gguf")


def test_a_folder_holds_one_model_or_is_asked_about(tmp_path: Path, whole: bytes) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "a.gguf").write_bytes(whole)
    assert load_model(str(folder))[0].name == "a"
    (folder / "b.gguf").write_bytes(whole)
    with pytest.raises(InputError, match=r"a\.gguf, b\.gguf"):
        load_model(str(folder))


def test_a_part_whose_number_or_name_is_off_is_refused(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "a-00004-of-00003.gguf"
    path.write_bytes(whole)
    assert "part 4 of 3" in refused(path)
    lone = tmp_path / "renamed.gguf"
    keys = struct.unpack_from("<Q", whole, 16)[0]
    lone.write_bytes(whole[:16] + struct.pack("<Q", keys + 1) + text_of("split.count") + struct.pack("<IH", 2, 3) + whole[24:] + b"\0" * 64)
    assert "3 parts" in refused(lone)


def test_a_hole_of_many_gigabytes_costs_neither_time_nor_memory(tmp_path: Path) -> None:
    path = tmp_path / "hole.gguf"
    path.write_bytes(HEAD + struct.pack("<QQ", 1_000_000, 100_000))
    os.truncate(path, 2**36)
    assert "damaged at byte" in refused(path)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_mutilated_bytes_give_a_model_or_one_line(tmp_path: Path, whole: bytes, data: st.DataObject) -> None:
    mutilated = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(mutilated) - 1))
        piece = data.draw(st.binary(min_size=1, max_size=9) | st.sampled_from([b"\xff" * 8, b"\0" * 8, struct.pack("<Q", 2**31)]))
        mutilated[place : place + len(piece)] = piece
    path = tmp_path / "a.gguf"
    path.write_bytes(bytes(mutilated[: data.draw(st.integers(0, len(mutilated)))]) if data.draw(st.booleans()) else bytes(mutilated))
    try:
        assert load_gguf(path).layers > 0
    except InputError as fault:
        assert not re.search(r"[\n{]", str(fault))


def test_the_tiny_model_is_sound(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    sound(path)
    assert load_gguf(path).parameters.total == 16 * 8 + 8 * 8 + 2 * 4 * 8 + 8 * 8
    assert len(read_head(path).tensors) == 5
