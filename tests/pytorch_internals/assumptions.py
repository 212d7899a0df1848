"""What xpurt takes for granted of PyTorch's internals: the table behind
docs/pytorch_internals.md. A pattern with a "*" stands for several names."""

from dataclasses import dataclass

CHECKED_WITH = "2.13.0"


@dataclass(frozen=True, slots=True)
class Member:
    """A private Python name. `expects`: the names of a function's parameters, as in
    "(self, event)", or the type that the value has; "" if it is enough that it is there.
    """

    name: str
    expects: str
    why: str


MEMBERS = (
    Member("torch._C._GLIBCXX_USE_CXX11_ABI", "bool", "the extension is built for one ABI"),
    Member("torch._C._has_xpu", "bool", "False: this wheel has no XPU of its own; xpurt sets it"),
    Member("torch._C._[Xx][Pp][Uu]*", "", "the names that PyTorch's `torch.xpu` is written over; xpurt sets them"),
    Member("torch._C._broadcast*", "", "names that CUDA builds alone have, for `DataParallel`; xpurt sets them"),
    Member("torch._C._gather*", "", "the same"),
    Member("torch._C._scatter*", "", "the same"),
    Member("torch._C._from_dlpack", "builtin_function_or_method", "replaced: takes tensors without elements"),
    Member("torch._C._to_dlpack*", "builtin_function_or_method", "its C function is replaced: a raw pointer leaves"),
    Member("torch._C._data_address", "builtin_function_or_method", "the same"),
    Member("torch._C.*Base.*data_ptr", "method_descriptor", "the same"),
    Member("torch._C._ImperativeEngine", "type", "the engine that Python calls; replaced by a subclass"),
    Member("torch._C._*_multithreading_enabled", "", "the engine's flag; replaced"),
    Member("torch._C._get_schema", "builtin_function_or_method", "schemas of ops that are computed by way of others"),
    Member("torch._C._get_privateuse1_backend_name", "builtin_function_or_method", "the name of PrivateUse1 as a device type"),
    Member("torch._C._is_alias_of", "builtin_function_or_method", "conformance: whether a result is a view"),
    Member("torch._C._autograd.DeviceType*", "", "events of the profiler say CUDA on a CPU build, and become XPU"),
    Member("torch.autograd.profiler.profile._parse_kineto_results", "(self, result, timeout_s)", "replaced, for the same"),
    Member("torch.autograd.variable.Variable._execution_engine", "", "the engine that Python calls; replaced"),
    Member("torch._decomp.decomposition_table*", "", "PyTorch's own decompositions are forms of rows"),
    Member("torch._prims_common.make_channels_last_strides_for", "(shape)", "strides of results of convolutions"),
    Member("torch._prims_common.make_contiguous_strides_for", "(shape, row_major)", "strides of results of convolutions"),
    Member("torch._prims_common.suggest_memory_format", "(x)", "memory formats of results"),
    Member("torch._dynamo.device_interface", "", "has taken functions of `torch.xpu` where it was imported first"),
    Member("torch._subclasses.fake_tensor.FakeTensorMode*", "", "`avoid_device_init` raises if CUDA and XPU are both built"),
    Member("torch._tensor_classes", "set", "the classes of tensors that are pickled to other processes"),
    Member("torch.UntypedStorage._share_f*_cpu_", "(self, args, kwargs)", "replaced: xpu memory can't be shared between processes"),
    Member("torch.Tensor._addmm_activation", "method_descriptor", "an op that has a row"),
    Member("torch._neg_view", "builtin_function_or_method", "the oracle copies negated views as such"),
    Member("torch._dynamo.backends.debugging.aot_eager", "function", "runs a graph op by op, where it cannot be compiled"),
    Member("torch._dynamo.reset", "()", "forgets compiled programs between the ops of a run"),
    Member("torch._dynamo.utils.counters", "defaultdict", "how many graphs were compiled"),
    Member("torch._subclasses.fake_impls.op_implementations_dict", "dict", "functions for ops while a graph is traced"),
    Member("torch._subclasses.fake_impls.register_op_impl", "(run_impl_check)", "adds one, before PyTorch's own if it returns something"),
    Member("torch._inductor.cpp_builder.get_cpp_compiler", "()", "raises where no C++ compiler works"),
    Member("torch._inductor.exc.InvalidCxxCompiler", "type", "which is that error"),
    Member("torch._inductor.lowering", "module", "functions of it are replaced"),
    Member("torch._inductor.lowering.lowerings", "dict", "the ops that Inductor compiles or calls"),
    Member("torch._inductor.lowering.unsupported_input_tensor", "(t, node)", "which tensors Inductor leaves to eager ops; replaced"),
    Member("torch._inductor.decomposition.select_decomp_table", "()", "activations after a convolution are traced with them, and found again"),
    Member("torch._inductor.compile_fx.fake_tensor_prop", "(gm, example_inputs, force_allow_non_fake_inputs)", "values of nodes that a pass has made"),
    Member("torch._inductor.ir.Layout", "type", "the device of a buffer"),
    Member("torch._inductor.codecache.PyCodeCache.modules", "list", "the modules of generated code"),
    Member("torch._inductor.codecache.PyCodeCache", "type", "the cache that has them"),
    Member("torch.ops.mkldnn._convolution_pointwise.default", "OpOverload", "what Inductor's freezing makes of a convolution"),
    Member("torch.utils._sympy.functions.FloorDiv", "", "quotients in indices of transposed operands"),
    Member("torch._dynamo.symbolic_convert", "module", "tells whether a program is traced"),
    Member("torch._dynamo.symbolic_convert.tls", "", "has `current_tx`, whose `one_graph` is `fullgraph`"),
    Member("torch._guards.TracingContext", "type", "of the program that is being compiled"),
    Member("torch._guards.TracingContext.report_output_strides", "()", "collects the strides of outputs: those of a second form are not the program's"),
    Member("torch._inductor.lowering.make_fallback", "(op, layout_constraint, warn, override_decomp, get_decomp_fn)", "makes an op one that is called"),
    Member("torch._inductor.lowering.sdpa_constraint", "(fx_node, args, kwargs)", "the layouts that attention gets"),
    Member("torch._functorch._aot_autograd.utils.make_boxed_func", "(f)", "the form in which Inductor calls a graph"),
    Member("torch._inductor.exc.OperatorIssue", "type", "an op that can't be lowered, by name"),
    Member("torch._inductor.exc.InductorError", "type", "a failed compilation, with its cause as `inner_exception`"),
    Member("torch._guards.TracingContext.try_get", "()", "`params_flat`: the parameters that freezing makes constants"),
    Member("torch._inductor.freezing_utils.has_frozen_params", "(gm)", "whether the parameters of a graph are constants"),
    Member("torch._inductor.codegen.common", "module", "the registry of Inductor's backends"),
    Member("torch._inductor.codegen.common.custom_backend_passes", "dict", "the uuid of a device's pass is part of the key of a compiled graph"),
    Member("torch._inductor.codegen.common.init_backend_registration", "()", "fills that registry at its first call, and replaces nothing later"),
    Member("torch._inductor.choices.InductorChoices", "type", "heuristics by device: how a reduction is divided"),
    Member("torch._inductor.codegen.common.BackendFeature.INPLACE_BUFFERS", "BackendFeature", "what kernels of OpenCL C can do"),
    Member("torch._inductor.codegen.common.CSE", "type", "names the values of a kernel; a subclass declares them with types"),
    Member("torch._inductor.codegen.common.CSEVariable", "type", "a value of a kernel, with its dtype"),
    Member("torch._inductor.codegen.common.DeferredLine", "type", "a store that is left out if nothing reads it"),
    Member("torch._inductor.codegen.common.OpOverrides", "type", "the ops of Inductor's loops; a subclass has their OpenCL C"),
    Member("torch._inductor.codegen.common.PythonPrinter", "type", "sizes in the code that calls kernels"),
    Member("torch._inductor.codegen.common.*Arg", "type", "arguments of a kernel"),
    Member("torch._inductor.codegen.common.register_backend_for_device", "(device, device_scheduling, device_wrapper_codegen, device_cpp_wrapper_codegen, device_fx_wrapper_codegen, device_custom_pass, device_custom_config)", "makes kernels of OpenCL C the backend for xpu"),
    Member("torch._inductor.codegen.simd.*", "", "Inductor's loops as kernels of work-items: the base of those in OpenCL C"),
    Member("torch._inductor.codegen.wrapper.*WrapperCodegen", "", "the Python code that calls kernels; a subclass allocates on xpu"),
    Member("torch._inductor.config*", "", "what Inductor leaves out while it makes such kernels"),
    Member("torch._inductor.dependencies.MemoryDep", "ABCMeta", "which elements of a buffer a kernel writes"),
    Member("torch._inductor.utils.IndentedBuffer", "type", "lines of code"),
    Member("torch._inductor.utils.get_bounds_index_expr", "(index)", "bounds of indices that become values"),
    Member("torch._inductor.utils.sympy_index_symbol", "(name)", "variables in index expressions: not negative"),
    Member("torch._inductor.utils.sympy_product", "(it)", "numbers of elements"),
    Member("torch._inductor.virtualized.V.set_choices_handler", "method", "sets those heuristics for a graph"),
    Member("torch._inductor.virtualized.*", "", "the graph and the kernel that are being generated"),
    Member("torch.utils._ordered_set.OrderedSet", "ABCMeta", "sets of Inductor's interfaces"),
    Member("torch.utils._sympy.printers.ExprPrinter", "type", "index expressions as text"),
    Member("torch.utils._sympy.symbol.*", "", "sizes that are floats"),
    Member("torch._inductor.compile_fx", "module", "replaced functions: torch.compile"),
    Member("torch._higher_order_ops.associative_scan", "function", "a replaced function, of the package and of its module of the same name"),
    Member("torch._inductor.config", "", "has `patch`; the settings of AOTInductor"),
    Member("torch._inductor.config.aot_inductor.metadata", "dict", "is written to AOTInductor's package"),
    Member("torch._inductor.config.max_autotune", "bool", "a mode that has `cudagraphs`, too"),
    Member("torch._inductor.config.triton.cudagraphs", "bool", "whether the program wishes graphs to be recorded"),
    Member("torch._inductor.config.patch", "", "sets them for one compilation"),
    Member("torch._inductor.virtualized.V", "", "the state of a compilation"),
    Member("torch._C._distributed_c10d._resolve_process_group", "builtin_function_or_method", "the group of a collective in a graph, by its name"),
    Member("torch._functorch._aot_autograd.runtime_wrappers.FakifiedOutWrapper*", "", "the results of a part of a graph that Dynamo divides; a method is replaced"),
    Member("torch.distributed.tensor._op_schema.OpStrategy", "type", "possible placements of the operands of attention"),
    Member("torch.distributed.tensor._op_schema.RuntimeSchemaInfo", "type", "which arguments of an op a strategy depends on"),
    Member("torch.distributed.tensor._ops.utils.expand_to_full_mesh_op_strategy", "(mesh, op_schema, single_mesh_dim_strategies, output_tensor_meta, input_index, inplace_op, allow_unbacked_sharding, allow_uneven_sharding, is_valid_strategy_cb, different_mesh_args)", "placements on a mesh, from those on one dimension"),
    Member("torch.distributed.tensor._ops.utils.register_op_strategy", "(op, schema_info)", "how DTensor shards the fused attention of CPU and xpu tensors"),
    Member("torch.distributed.tensor.experimental._context_parallel._attention", "module", "ring attention; it is changed"),
    Member("torch._inductor.virtualized.V.aot_compilation", "bool", "whether a package is being made"),
    Member("torch.export.pt2_archive._package", "module", "has the class of a loaded package"),
    Member("torch._inductor.custom_graph_pass.CustomGraphModulePass", "ABCMeta", "the interface of such a pass"),
    Member("torch._inductor.utils", "module", "GPU_TYPES"),
    Member("torch._inductor.utils.BoxedBool", "type", "whether Inductor records a CUDA graph: not for xpu"),
    Member("torch._foreach_copy_", "builtin_function_or_method", "copies the inputs of a recorded graph"),
    Member("torch._C._storage_Use_Count", "builtin_function_or_method", "whether a result of a recorded graph is alive"),
    Member("torch._inductor.utils.get_donated_idxs", "()", "the saved tensors that a backward graph may write to"),
    Member("torch._inductor.utils.GPU_TYPES.remove", "builtin_function_or_method", "devices that Triton compiles for; xpu is not one of them"),
    Member("torch._subclasses.fake_tensor.FakeTensor", "_TensorMeta", "tensors of a graph; their mode makes the CPU's"),
    Member("torch._subclasses.fake_tensor.unset_fake_temporarily", "()", "constants of a graph are real tensors"),
    Member("torch.utils._pytree", "module", "tensors within arguments of a graph's nodes"),
    Member("torch._ops.OpOverload", "type", "ops in traced graphs of the simulator"),
    Member("torch.cuda._device_count_nvml", "()", "counts CUDA GPUs without CUDA; negative if NVML can't say"),
    Member("torch.cuda._is_compiled", "()", "whether this is a CUDA build"),
    Member("torch.ops.aten._*", "OpOverloadPacket", "private ops that are called"),
    Member("torch.utils._python_dispatch.TorchDispatchMode", "type", "conformance: which ops a call is made of"),
    Member("torch.utils._pytree.*", "function", "trees of tensors as arguments and results"),
    Member("torch.xpu._is_compiled", "()", "asked by PyTorch, and replaced on a CUDA build"),
    Member("torch.xpu._is_in_bad_fork", "()", "what a runtime of a device type has to offer"),
    Member("torch.xpu._lazy_init", "()", "what a runtime of a device type has to offer"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Patch:
    """What xpurt sets, replaces or removes in another package. `targets`: as the sources
    write it. `members`: what has to be there for that, with parameters as in `Member`;
    an attribute of a class where there is a ":"."""

    targets: tuple[str, ...]
    members: tuple[tuple[str, str], ...]
    why: str


PATCHES = (
    Patch(
        ("setattr(compile_fx, name)", "common.custom_backend_passes['xpu']"),
        (
            ("torch._inductor.compile_fx.compile_fx", "(model_, example_inputs_, inner_compile, config_patches, decompositions, ignore_shape_env, compile_region_name)"),
            ("torch._inductor.compile_fx.partition_fn", "(gm, joint_inputs, partitioner_fn_override, kwargs)"),
            ("torch._inductor.compile_fx.compile_fx_forward", "(gm, example_inputs, num_orig_model_outputs, num_example_inputs, compiler_config_extra, inner_compile, is_inference)"),
            ("torch._inductor.compile_fx.compile_fx_backward", "(gm, example_inputs, compiler_config_extra, inner_compile)"),
            ("torch._inductor.compile_fx.fw_compiler_freezing", "(aot_autograd_model, aot_example_inputs, dynamo_model, num_example_inputs, inner_compile, cudagraphs, graph_id, forward_device)"),
            ("torch._inductor.compile_fx._compile_fx_inner", "(gm, example_inputs, compile_region_name, graph_kwargs)"),
            ("torch._inductor.compile_fx.fx_codegen_and_compile", "(gm, example_inputs, inputs_to_check, compile_region_name, graph_kwargs)"),
            ("torch._inductor.compile_fx.CompiledFxGraph:post_compile", "(self, example_inputs, constants, graph_kwargs)"),
            ("torch.export.pt2_archive._package.AOTICompiledModel:__init__", "(self, loader)"),
        ),
        "graphs on xpu become graphs of CPU tensors over the same bytes, between AOTAutograd and Inductor",
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
        ("names[_CLASS]", "names['_XCCL_AVAILABLE']"),
        (
            ("torch.distributed.distributed_c10d._XCCL_AVAILABLE", "bool"),
            ("torch.distributed.distributed_c10d.BackendConfig:__init__", "(self, backend)"),
        ),
        "the class `ProcessGroupXCCL` is added, with the flag that it is there; a group without a backend's name has gloo, too",
    ),
    Patch(
        ("vars(ring)['_enable_cp_dtensor_dispatcher']", "vars(ring)['_disable_cp_dtensor_dispatcher']"),
        (
            ("torch.distributed.tensor.experimental._context_parallel._attention._enable_cp_dtensor_dispatcher", "()"),
            ("torch.distributed.tensor.experimental._context_parallel._attention._disable_cp_dtensor_dispatcher", "()"),
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
        ("setattr(context, _FULLGRAPH)",),
        (("torch._guards.TracingContext", "type"),),
        "whether a program has to be one graph is kept for its backward graph",
    ),
    Patch(
        ("opencl_scheduling.register(host_code.KeyOfHome())", "setattr(OpenCLExpressions, _name)"),
        (
            ("torch._inductor.choices.InductorChoices.reduction_split_factor", "(device, reduction_numel_hint, numel_hint, inner_reduction)"),
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
        ("setattr(context, name)", "setattr(owner, each)", "setattr(owner, name)"),
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
        ("ForkingPickler.register(kind)", "setattr(torch.UntypedStorage, name)"),
        (("torch.multiprocessing.reductions.reduce_tensor", "(tensor)"), ("torch.UntypedStorage:_share_fd_cpu_", "(self, args, kwargs)")),
        "xpu tensors are copied to other processes",
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
        ("sys.modules['xpurt._C']", "sys.modules['xpurt']._C"),
        (),
        "xpurt's own: stands in for the extension where it is not loaded",
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
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Native:
    """A C++ name, inner header (`<...>`) or private member (`&Class::member_`).

    `header`: where it is declared, below torch/include; "" for headers themselves.
    """

    name: str
    header: str
    why: str


NATIVE = (
    Native("at::native::structured_*", "ATen/ops/*_native.h", "structured CPU kernels run on xpu tensors themselves: Note [Structured ops on xpu tensors]"),
    Native("at::native::resize_output", "ATen/native/Resize.h", "out= arguments are resized as PyTorch does"),
    Native("at::native::result_type", "ATen/ops/result_type_native.h", "type promotion of rows"),
    Native("at::native::update_result_type_state", "ATen/native/TypeProperties.h", "type promotion of rows"),
    Native("at::native::ResultTypeState", "ATen/native/TypeProperties.h", "type promotion of rows"),
    Native("at::native::*ested*ensor*mpl", "ATen/NestedTensorImpl.h", "nested tensors as CPU tensors on the same bytes"),
    Native("at::native::ZeroTensorAllocator", "ATen/native/TensorFactories.h", "_efficientzerotensor on xpu"),
    Native("at::native::fill_*_deterministic_", "ATen/native/*.h", "deterministic filling of new memory"),
    Native("at::native::check_supported_max_int_with_precision", "ATen/native/TensorFactories.h", "the checks of randperm"),
    Native("at::native::checkSetStorage", "ATen/native/Resize.h", "set_ on xpu"),
    Native("at::native::*mixed*type", "ATen/native/cpu/mixed_data_type.h", "group_norm and layer_norm of two dtypes"),
    Native("at::native::_check_layer_norm_inputs", "ATen/native/layer_norm.h", "the checks of layer_norm"),
    Native("at::native::expandTensors", "ATen/native/IndexingUtils.h", "indices of index and index_put"),
    Native("at::native::toListOfOptionalTensors", "ATen/native/IndexingUtils.h", "indices of index and index_put"),
    Native("at::native::hasContiguousSubspace", "ATen/native/IndexingUtils.h", "indices of index and index_put"),
    Native("at::native::templates", "ATen/native/DistributionTemplates.h", "the checks of random ops"),
    Native("at::native::*", "ATen/ops/*_native.h", "functions of the wheel that are called past the dispatcher"),
    Native("at::detail::get*Hooks", "ATen/detail/*HooksInterface.h", "the hooks of XPU and CUDA are replaced in place; neither interface has data members"),
    Native("at::detail::*", "ATen/*.h", "making of tensors"),
    Native("at::impl::ThreadLocalPythonObjects", "ATen/ThreadLocalPythonObjects.h", "state of Python that travels with a thread"),
    Native("c10::detail::getNonDeterministicRandom", "c10/core/GeneratorImpl.h", "seeds"),
    Native("c10::impl::DeviceGuardImplInterface", "c10/core/impl/DeviceGuardImplInterface.h", "the guard of xpu"),
    Native("c10::impl::device_guard_impl_registry", "c10/core/impl/DeviceGuardImplInterface.h", "whether another accelerator has devices"),
    Native("c10::impl::TorchDispatchModeKey", "c10/core/impl/TorchDispatchModeTLS.h", "the modes of a compiler that records a program"),
    Native("c10::impl::TorchDispatchModeTLS", "c10/core/impl/TorchDispatchModeTLS.h", "whether they are on: attention becomes products and a softmax then"),
    Native("c10::impl::VirtualGuardImpl", "c10/core/impl/VirtualGuardImpl.h", "streams of the results of a collective"),
    Native("c10::impl::GPUTrace", "c10/core/impl/GPUTrace.h", "callbacks of `torch.xpu._gpu_trace`"),
    Native("c10::impl::PyInterpreter*", "c10/core/impl/PyInterpreter.h", "callbacks of `torch.xpu._gpu_trace`"),
    Native("c10::impl::boxArgs", "ATen/core/boxing/impl/boxing.h", "unboxed calls that end in a boxed one"),
    Native("c10::impl::PopResult", "ATen/core/boxing/impl/boxing.h", "unboxed calls that end in a boxed one"),
    Native("libkineto::*", "kineto/*.h", "the profiler of xpu's work"),
    Native("torch::autograd::*", "torch/csrc/autograd/*.h", "gradients of recurrent layers, and the engine's threads"),
    Native("torch::unwind::*", "torch/csrc/profiler/unwind/unwind.h", "stack traces in snapshots of memory"),
    Native("torch::utils::*", "torch/csrc/utils/device_lazy_init.h", "forked processes"),
    Native("&EngineTable::device_ready_queues_", "torch/csrc/autograd/engine.h", "Note [Autograd's threads]: the table of queues is extended"),
    Native("&EngineTable::thread_pool_shared_", "torch/csrc/autograd/engine.h", "Note [Autograd's threads after a fork]"),
    Native("&ReadyQueue::*_", "torch/csrc/autograd/engine.h", "Note [Autograd's threads at exit]"),
    Native("&Tasks::c", "", "the container below std::priority_queue, as the C++ standard has it"),
    Native("<ATen/*>", "", "inner headers of ATen"),
    Native("<c10/core/impl/*>", "", "inner headers of c10"),
    Native("<torch/csrc/*>", "", "inner headers of torch"),
    Native("<kineto/*>", "", "headers of kineto, which the wheel brings"),
)  # fmt: skip
