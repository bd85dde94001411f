"""NVIDIA's dcgm-exporter: what devices say of themselves; the profiling fields have to be enabled in its list of counters."""

from __future__ import annotations

from breakeven.adapter import Adapter, Alias, NotExposed
from breakeven.messages import Message

MIB = 2.0**20
PERCENT = 0.01

ADAPTER = Adapter(
    engine="",
    role="device",
    prefixes=("DCGM_FI_",),
    rank_labels=("Hostname", "gpu", "GPU_I_ID"),
    model_label="modelName",
    quantities={
        "device_dram_active": (Alias(family="DCGM_FI_PROF_DRAM_ACTIVE", sense="dram_active"),),
        "device_tensor_active": (Alias(family="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", sense="tensor_active"),),
        "device_busy": (Alias(family="DCGM_FI_DEV_GPU_UTIL", scale=PERCENT, sense="kernel_ran"),),
        "device_memory_used_bytes": (Alias(family="DCGM_FI_DEV_FB_USED", scale=MIB, sense="memory_of_device"),),
        "device_memory_free_bytes": (Alias(family="DCGM_FI_DEV_FB_FREE", scale=MIB, sense="memory_of_device"),),
        "device_info": (Alias(family="DCGM_FI_DEV_FB_USED", sense="labels_of_device"),),
        "device_power_w": (Alias(family="DCGM_FI_DEV_POWER_USAGE", sense="power_drawn"),),
    },
    not_exposed=(
        NotExposed(quantity="device_dram_active", instead=Message("adapter.instead_dcgm_profiling")),
        NotExposed(quantity="device_tensor_active", instead=Message("adapter.instead_dcgm_profiling")),
        NotExposed(quantity="running", instead=Message("adapter.instead_engine_page")),
    ),
)
