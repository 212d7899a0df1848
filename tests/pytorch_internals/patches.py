"""What xpurt writes over in PyTorch: a part of the table behind
docs/pytorch_internals.md."""

from pytorch_internals.kinds import Patch

PATCHES = (
    Patch(
        ("torch.mkldnn",),
        (),
        "the layout `torch._mkldnn` under the name that the proposals use, where PyTorch has none",
    ),
    Patch(
        ("setattr(compile_fx, name)", "common.custom_backend_passes['xpu']"),
        (
            ("torch._inductor.compile_fx.compile_fx", "(model_, example_inputs_, inner_compile, config_patches, decompositions, ignore_shape_env, compile_region_name)"),
            ("torch._inductor.compile_fx.partition_fn", "(gm, joint_inputs, partitioner_fn_override, kwargs)"),
            ("torch._inductor.compile_fx.compile_fx_forward", "(gm, example_inputs, num_orig_model_outputs, num_example_inputs, compiler_config_extra, inner_compile, is_inference)"),
            ("torch._inductor.compile_fx.compile_fx_backward", "(gm, example_inputs, compiler_config_extra, inner_compile)"),
            ("torch._inductor.compile_fx.fw_compiler_freezing", {"2.13": "(aot_autograd_model, aot_example_inputs, dynamo_model, num_example_inputs, inner_compile, cudagraphs, graph_id, forward_device)", "2.15": "(aot_autograd_model, aot_example_inputs, dynamo_model, num_example_inputs, inner_compile, compiler_config_extra)"}),
            ("torch._inductor.compile_fx._compile_fx_inner", "(gm, example_inputs, compile_region_name, graph_kwargs)"),
            ("torch._inductor.compile_fx.fx_codegen_and_compile", "(gm, example_inputs, inputs_to_check, compile_region_name, graph_kwargs)"),
            ("torch._inductor.compile_fx.CompiledFxGraph:post_compile", "(self, example_inputs, constants, graph_kwargs)"),
            ("torch.export.pt2_archive._package.AOTICompiledModel:__init__", "(self, loader)"),
        ),
        "graphs on xpu become graphs of CPU tensors over the same bytes, between AOTAutograd and Inductor",
    ),
    Patch(
        ("setattr(group, 'codegen_group')", "lowering.lowerings[each]"),
        (
            ("torch._inductor.codegen.cpp.KernelGroup:codegen_group", "(self, name)"),
            ("torch._inductor.lowering.max_pool2d_with_indices_backward", "(grad_output, x, kernel_size, stride, padding, dilation, ceil_mode, indices)"),
            ("torch._inductor.lowering.max_pool2d_with_indices", "(x, kernel_size, stride, padding, dilation, ceil_mode)"),
        ),
        "code of xpu's graphs for the host has masks as instructions, and calls PyTorch's gradient of max pooling, and in lazy graphs max pooling with indices; that of CPU tensors does not",
    ),
    Patch(
        ("torch._C._lazy_ts_backend._init",),
        (("torch._C._lazy_ts_backend._init", ""),),
        "PyTorch's lazy backend is refused once xpu's is there: it would replace kernels first",
    ),
    Patch(
        ("setattr(torch.optim.Optimizer, name)",),
        (("torch.optim.Optimizer:_accelerator_graph_capture_health_check", "(self)"),),
        "a step of an optimizer on CPU tensors asks for no accelerator before xpu is used",
    ),
    Patch(
        ("setattr(torch.version, 'xpu')", "torch.ops.xpurt", "delattr(torch.ops, 'xpurt')"),
        (
            ("torch.library.Library:impl", "(self, op_name, fn, dispatch_key, with_keyset, allow_override)"),
            ("torch.library.Library:fallback", "(self, fn, dispatch_key, with_keyset)"),
            ("torch.utils.dlpack.from_dlpack", "(ext_tensor, device, copy)"),
            ("torch._C.import_ir_module", ""),
            ("torch._C.import_ir_module_from_buffer", ""),
            ("torch.distributed.distributed_c10d.is_xccl_available", "()"),
            ("torch._inductor.kernel.flex.flex_cpu.check_cpu_supported", "()"),
            ("torch._inductor.lowering.needs_fallback_due_to_atomic_add_limitations", "(dtype)"),
        ),
        "until the first use of xpu loads xpurt, these stand for it, and are put back then; the last two decide about CPU tensors as without xpu",
    ),
    Patch(
        ("output_graph.has_user_objects",),
        (
            ("torch._dynamo.output_graph.has_user_objects", "()"),
            ("torch._dynamo.variables.streams.SymbolicStreamState:__init__", "(self)"),
            ("torch._dynamo.variables.streams.SymbolicStreamState:cur_stream", "(self, device)"),
        ),
        "a trace of a program that has not used xpu begins without its stream, and code that reads no stream asks for none",
    ),
    Patch(
        ("package.associative_scan",),
        (("torch._higher_order_ops.associative_scan", "(combine_fn, xs, dim, reverse, combine_mode)"),),
        "scans of xpu tensors are composed of other ops, whose derivatives PyTorch computes correctly",
    ),
    Patch(
        ("lowering.unsupported_input_tensor", "vars(lowering)['is_gpu']"),
        (
            ("torch._inductor.lowering.unsupported_input_tensor", "(t, node)"),
            ("torch._inductor.lowering.is_gpu", "(device)"),
        ),
        "ops of types that kernels lack are called alone, and numbers on the CPU are beside xpu tensors as beside those of a GPU",
    ),
    Patch(
        ("fusion['is_mkldnn_bf16_supported']", "fusion['is_mkldnn_fp16_supported']"),
        (
            ("torch._inductor.fx_passes.mkldnn_fusion.is_mkldnn_bf16_supported", "(device_type)"),
            ("torch._inductor.fx_passes.mkldnn_fusion.is_mkldnn_fp16_supported", "(device_type)"),
        ),
        "oneDNN's convolutions of xpu tensors have the types that they have on the CPU, whose kernels they are",
    ),
    Patch(
        ("names[_CLASS]", "names['_XCCL_AVAILABLE']"),
        (
            ("torch.distributed.distributed_c10d._XCCL_AVAILABLE", "bool"),
            ("torch.distributed.distributed_c10d.BackendConfig:__init__", "(self, backend)"),
        ),
        "the class `ProcessGroupXCCL` is added, with the flag that it is there; a group without a backend's name has gloo, too",
    ),
    Patch(
        ("setattr(parameters, name)",),
        (
            *((f"torch.distributed.fsdp._fully_shard._fsdp_param.{name}_storage", "(tensor)") for name in ("alloc", "free")),
            ("torch.distributed.fsdp._fully_shard._fsdp_param.FSDPParam:reset_sharded_param", "(self)"),
            ("torch.distributed.fsdp._fully_shard._fsdp_collectives.lib", "Library"),
        ),
        "FSDP2 frees and compares the memory of tensors, and lazy ones have none; its own ops get kernels for these",
    ),
    Patch(
        ("vars(ring)['_enable_cp_dtensor_dispatcher']", "vars(ring)['_disable_cp_dtensor_dispatcher']"),
        (
            *((f"torch.distributed.tensor.experimental._context_parallel._attention._{name}_cp_dtensor_dispatcher", "()") for name in ("enable", "disable")),
            ("torch.distributed.tensor.experimental._context_parallel._attention.custom_ops", "dict"),
            ("torch.distributed.tensor.experimental._context_parallel._attention._templated_ring_attention", "(group, seq_dim, op, query, key, value, is_causal, kwargs)"),
            ("torch.distributed.tensor.experimental._context_parallel._attention._templated_ring_attention_backward", "(group, seq_dim, op, grad_out, grad_out_name, query, key, value, out, logsumexp, is_causal, kwargs)"),
        ),
        "the fused attention of CPU and xpu tensors is one more of those that PyTorch's ring attention calls",
    ),
    Patch(
        ("FakifiedOutWrapper.pre_compile",),
        (("torch._functorch._aot_autograd.runtime_wrappers.FakifiedOutWrapper:pre_compile", "(self, fw_module, flat_args, aot_config, fw_metadata)"),),
        "results of a part of a divided graph, for the compilation of the next part, are on xpu again",
    ),
    Patch(
        ("names[name]",),
        tuple((f"torch.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook.{name}", "(hook, ddp, zero, shard_buckets)") for name in ("hook_with_zero_step", "hook_with_zero_step_interleaved")),
        "hooks that would hang with gloo, which PyTorch tells by a backend's name alone",
    ),
    Patch(
        ("setattr(op, 'decompose')", "delattr(op, 'decompose')"),
        (("torch._ops.OpOverload:decompose", "(self, args, kwargs)"),),
        "while a graph of a prototype is traced: an op that the vendor has a kernel for stays one op",
    ),
    Patch(
        ("setattr(context, _FULLGRAPH)",),
        (("torch._guards.TracingContext", "type"),),
        "whether a program has to be one graph is kept for its backward graph",
    ),
    Patch(
        ("opencl_scheduling.register(host_code.KeyOfHome())", "setattr(OpenCLExpressions, _name)"),
        (
            ("torch._inductor.choices.InductorChoices.reduction_split_factor", {"2.13": "(device, reduction_numel_hint, numel_hint, inner_reduction)", "2.14": "(self, device, reduction_numel_hint, numel_hint, inner_reduction)"}),
            ("torch._inductor.codegen.common.CSE:generate", "(self, buffer, expr, bounds, write, assignment, dtype, shape)"),
            ("torch._inductor.codegen.common.KernelArgs:python_argdefs", "(self)"),
            ("torch._inductor.codegen.simd.IterationRangesEntry:cache_clear", "(self)"),
            ("torch._inductor.codegen.simd.SIMDKernel:call_kernel", "(self, name, node, deallocate_ws)"),
            ("torch._inductor.codegen.simd.SIMDKernel:codegen_body", "(self)"),
            ("torch._inductor.codegen.simd.SIMDKernel:codegen_iteration_ranges_entry", "(self, entry)"),
            ("torch._inductor.codegen.simd.SIMDKernel:codegen_kernel", "(self)"),
            ("torch._inductor.codegen.simd.SIMDKernel:finalize_indexing", "(self, indices)"),
            ("torch._inductor.codegen.simd.SIMDKernel:get_strides_of_load", "(self, index)"),
            ("torch._inductor.codegen.simd.SIMDKernel:index_to_str", "(self, index)"),
            ("torch._inductor.codegen.simd.SIMDKernel:mask_loads", "(self, mask, value)"),
            ("torch._inductor.codegen.simd.SIMDKernel:prepare_indexing", "(self, index)"),
            ("torch._inductor.codegen.simd.SIMDKernel:swap_buffers", "(self, lb, cb, sb)"),
            ("torch._inductor.codegen.simd.SIMDScheduling:define_kernel", "(self, src_code, node_schedule, kernel)"),
            ("torch._inductor.codegen.wrapper.PythonWrapperCodegen:define_kernel", "(self, kernel_name, kernel_body, metadata, gpu, cpp_definition)"),
            ("torch._inductor.codegen.wrapper.PythonWrapperCodegen:ensure_size_computed", "(self, sym)"),
            ("torch._inductor.codegen.wrapper.PythonWrapperCodegen:make_allocation", "(self, name, device, dtype, shape, stride, allocation_shape, is_pinned)"),
            ("torch._inductor.codegen.wrapper.PythonWrapperCodegen.create", "(is_subgraph, subgraph_name, parent_wrapper, partition_signatures)"),
            ("torch._inductor.codegen.wrapper.PythonWrapperCodegen:write_header", "(self)"),
            ("torch._inductor.graph.GraphLowering:get_dtype", "(self, buffer_name)"),
            ("torch._inductor.graph.GraphLowering:is_unspec_arg", "(self, name)"),
            ("torch._inductor.graph.GraphLowering:try_get_buffer", "(self, buffer_name)"),
            ("torch._inductor.config.xpu_backend", "str"),
        ),
        "fused loops become kernels of OpenCL C: methods of Inductor's classes that are overridden or called. The backend's name stays Triton's, by which Inductor deduces dtypes",
    ),
    Patch(
        ("setattr(context, name)", "setattr(owner, each)", "setattr(owner, name)", "setattr(owner, made.target)"),
        (),
        "the same: the parameters to freeze, for the time of that; constants of the graph itself",
    ),
    Patch(
        ("torch.xpu", "setattr(torch._C, name)", "delattr(torch._C, name)", "sys.modules.pop"),
        (("torch.xpu.device_count", ""), ("torch.xpu.random.device_count", ""), ("torch.xpu.Stream", "type")),
        "PyTorch's own Python layer is imported once more, over xpurt's names",
    ),
    Patch(
        ("module['device_count']", "module['random'].device_count", "module['get_device_capability']", "module['Stream'].__hash__"),
        (("torch.xpu.get_device_capability.__wrapped__", "(device)"), ("torch.xpu.Stream:__hash__", "")),
        "functions of the layer that know nothing of mappings",
    ),
    Patch(
        ("module.update",),
        tuple((f"torch.xpu.{each}", "(device)") for each in ("temperature", "clock_rate", "power_draw", "utilization", "memory_usage", "device_memory_used")),
        "sensors: PyTorch reads Level Zero's, whose devices are others",
    ),
    Patch(
        ("module['_is_compiled']",),
        (("torch.xpu._is_compiled", "()"),),
        "on a CUDA build PyTorch takes it for impossible that XPU is compiled in, too",
    ),
    Patch(
        ("vars(self.module)['_get_device_properties']", "vars(self.module)['default_generators']"),
        (("torch.xpu.default_generators", "tuple"),),
        "what `torch._C._xpu_init` sets in `torch.xpu`",
    ),
    Patch(
        ("vars(self.module)['graph'].default_capture_stream",),
        (("torch.xpu.graph:default_capture_stream", ""),),
        "the stream of captures belongs to a mapping",
    ),
    Patch(
        ("torch.version.xpu",),
        (("torch.version.xpu", "NoneType"),),
        "the version of SYCL, as in a build with XPU",
    ),
    Patch(
        ("vars(dynamo)['get_xpu_stream']", "setattr(interface, name)", "interface.get_raw_stream"),
        (),
        "`torch._dynamo.device_interface.XpuInterface` holds functions of `torch.xpu`",
    ),
    Patch(
        ("sys.modules.update", "sys.modules[f'torch.{name}']", "sys.modules[path]", "setattr(torch, name)", "setattr(torch, self.name)", "delattr(torch, self.name)"),
        (("torch.get_device_module.cache_clear", ""),),
        "`register_runtime`: a module becomes `torch.<device type>`; PyTorch caches what it found",
    ),
    Patch(
        ("setattr(torch, 'register_runtime')",),
        (),
        "`add_to_torch()`, when it is called: PyTorch has no such function",
    ),
    Patch(
        ("setattr(torch.autocast, '__init__')",),
        (
            ("torch.autocast.__init__", "(self, device_type, dtype, enabled, cache_enabled)"),
        ),
        "`xpurt.autocast.add_to_torch()`, when it is called: `torch.autocast` takes a layout",
    ),
    Patch(
        ("setattr(nn.Module, '_apply')", "setattr(state, _KEPT)"),
        (("torch.nn.Module._apply", "(self, fn, recurse)"),),
        "prototype devices: tied weights stay tied; the state of a generator carries other states",
    ),
    Patch(
        ("modules[:]", "sys.modules[name]"),
        (("torch._inductor.codecache.PyCodeCache.modules", "list"),),
        "modules of generated code with xpu tensors as constants leave Inductor's list and `sys.modules`",
    ),
    Patch(
        (),
        (
            ("torch._inductor.codegen.simd.SIMDScheduling.candidate_tilings.cache_clear", ""),
            ("torch._inductor.freezing_utils.is_frozen_param", "(t)"),
        ),
        "a cache of nodes is emptied; a packed weight gets the attribute `_is_frozen_param`, so that no disk keeps its elements",
    ),
    Patch(
        ("FakeTensorMode.avoid_device_init",),
        (("torch._subclasses.fake_tensor.FakeTensorMode:avoid_device_init", "property"),),
        "on a CUDA build it would raise",
    ),
    Patch(
        ("profile._parse_kineto_results",),
        (("torch.autograd.profiler.profile:_parse_kineto_results", "(self, result, timeout_s)"),),
        "events of xpu's work are named after CUDA in a CPU build",
    ),
    Patch(
        ("Variable._execution_engine", "torch._C._is_multithreading_enabled", "torch._C._set_multithreading_enabled", "torch.autograd.is_multithreading_enabled"),
        (("torch._C._ImperativeEngine", "type"), ("torch.autograd.variable.Variable:_execution_engine", ""), ("torch._C._is_multithreading_enabled", ""), ("torch._C._set_multithreading_enabled", ""), ("torch.autograd.is_multithreading_enabled", "")),
        "backward runs in the thread that calls it: Note [Backward in the calling thread]",
    ),
    Patch(
        ("vars(torch.accelerator)['current_accelerator']",),
        (("torch.accelerator.current_accelerator", "(check_available)"),),
        "None where it is known that there is no device",
    ),
    Patch(
        ("ForkingPickler.register(kind)", "delattr(kind, name)", "setattr(kind, name)"),
        (("torch.multiprocessing.reductions.reduce_storage", "(storage)"), ("torch.UntypedStorage:_share_fd_cpu_", "(self, args, kwargs)"), ("torch.UntypedStorage:share_memory_", "(self, args, kwargs)"), ("torch.UntypedStorage:is_shared", "")),
        "processes share xpu memory on the CPU device; elsewhere it is an error",
    ),
    Patch(
        ("Tensor._reduce_ex_internal",),
        (("torch.Tensor:_reduce_ex_internal", "(self, proto)"),),
        "a lazy tensor is saved as a CPU tensor and its device",
    ),
    Patch(
        ("setattr(after, '__prepare_scriptable__')", "setattr(module, before.__name__)"),
        (
            ("torch.optim.optimizer._default_to_fused_or_foreach", "(params, differentiable, use_fused)"),
            ("torch.optim.optimizer._get_capturable_supported_devices", "(supports_xla)"),
            ("torch.optim.optimizer._get_fused_kernels_supported_devices", "()"),
        ),
        "optimizers take `capturable=True` on lazy tensors and prototype devices, and `fused=True` on the latter; those of lazy parameters choose ops on lists, as PyTorch's list of devices has it for xpu",
    ),
    Patch(
        ("torch.manual_seed", "torch.random.manual_seed"),
        (("torch.random.manual_seed", "(seed)"),),
        "a seed is also that of prototype devices whose type PyTorch's function does not know",
    ),
    Patch(
        ("entry.fake_impl.register(fake)",),
        (("torch._library.fake_impl.FakeImplHolder:register", "(self, func, source, lib, allow_override)"),),
        "registers the fake kernel of a fused op, without the search for the caller's lines that `torch.library.register_fake` makes",
    ),
    Patch(
        ("ProcessGroup.shutdown",),
        (("torch._C._distributed_c10d.ProcessGroup:shutdown", ""),),
        "collectives of lazy tensors that were traced run before their group ends: `destroy_process_group` calls it first",
    ),
    Patch(
        ("Library.impl", "setattr(module, name)"),
        (("torch.library.Library:impl", "(self, op_name, fn, dispatch_key, with_keyset, allow_override)"),),
        "lazy tensors know an op of a program as soon as it has a kernel; `torch.lazy` has the functions of `torch.xpu`",
    ),
    Patch(
        ("setattr(Tensor, name)", "setattr(Tensor, f'is_{name}')", "setattr(nn.Module, name)"),
        (("torch.Tensor:ipu", ""), ("torch.nn.Module:ipu", "(self, device)"), ("torch.nn.Module:mtia", "(self, device)")),
        "methods that are named after a prototype device, as far as PyTorch lacks them; its own `Tensor.ipu` takes no index",
    ),
    Patch(
        ("setattr(Tensor, name)", "setattr(module, name)"),
        (
            ("torch.Tensor:__dlpack__", "(self, stream, max_version, dl_device, copy)"),
            ("torch.Tensor:__dlpack_device__", "(self)"),
            ("torch.from_dlpack", "(ext_tensor, device, copy)"),
            ("torch.to_dlpack", ""),
        ),
        "DLPack of tensors on prototype devices, once there is one; of other tensors it is PyTorch's",
    ),
    Patch(
        ("setattr(distributed_c10d.Backend, 'register_backend')", "setattr(distributed_c10d.BackendConfig, '__init__')"),
        (
            ("torch.distributed.distributed_c10d.Backend.register_backend", "(name, func, extended_api, devices)"),
            ("torch.distributed.distributed_c10d.Backend.default_device_backend_map", "dict"),
            ("torch.distributed.distributed_c10d.BackendConfig:__init__", "(self, backend)"),
        ),
        "once there is a prototype device: a group without a backend's name has one for it, and a vendor's is preferred to xpurt's",
    ),
    Patch(
        ("saved_storages.register(name)",),
        (("torch.serialization.register_package", "(priority, tagger, deserializer)"),),
        "xpurt's own function, which adds the storages of a prototype device to those that `torch.load` knows",
    ),
    Patch(
        ("setattr(torch.Tensor, INTERFACE)", "delattr(torch.Tensor, INTERFACE)"),
        (),
        "`__sycl_usm_array_interface__`: a new attribute of tensors",
    ),
    Patch(
        ("vars(torch)['from_dlpack']", "vars(torch.utils.dlpack)['from_dlpack']", "vars(torch._C)['_from_dlpack']"),
        (("torch.from_dlpack", "(ext_tensor, device, copy)"), ("torch._C._from_dlpack", "")),
        "takes arrays of dpctl and dpnp, and tensors without elements",
    ),
    Patch(
        ("vars(SplitOptimizer)['step'].hooked", "vars(SplitOptimizer)['step']._wrapped_by_lr_sched"),
        (("torch.optim.Optimizer.profile_hook_step", "(func)"), ("torch.optim.Optimizer._patch_step_function", "(self)"), ("torch.optim.lr_scheduler.LRScheduler", "")),
        "marks of a step whose hooks run, and that schedulers need not wrap; it sets their `_opt_called`. tests/optimization holds it",
    ),
    Patch(
        ("sys.modules['xpurt._C']", "sys.modules['xpurt']._C", "sys.modules['xpurt']._layouts", "sys.modules['xpurt']._lazy", "sys.modules['xpurt']._prototype"),
        (),
        "xpurt's own: stand in for extensions that are not loaded",
    ),
    Patch(
        ("sys.meta_path.insert",),
        (),
        "Python: packages are changed right after their import",
    ),
    Patch(
        ("setattr(chooser, name)", "setattr(strategy, each)", "setattr(sys.modules[made.__module__], made.__name__)", "registry.register(NAME)", "accelerator_registry.register(NAME)"),
        (),
        "lightning: an accelerator `xpu` for its Trainer and its Fabric; tests/integrations holds it",
    ),
    Patch(
        ("setattr(distributed, _FUNCTION)",),
        (),
        "timm: the default of its training script's ranks on xpu; tests/integrations holds it",
    ),
)  # fmt: skip
