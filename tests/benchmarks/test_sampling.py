from benchmarks.sampling import full_batches, mini_batches, sampling_table


def test_both_ways_train() -> None:
    size = (3000, 9000, 8)
    found = {"mini-batches": mini_batches(*size), "full batch": full_batches(*size)}
    for way in found.values():
        assert way["losses"][-1] < way["losses"][0]
        assert way["peak bytes"] >= way["peak bytes of the data"] > 0
    assert found["mini-batches"]["steps per epoch"] == 1
    result = {"nodes": size[0], "edges": size[1], "features": size[2], **found}
    assert sampling_table(result).row_count == 8
