import torch

from distill_gan.cyclegan import ImagePool


def fakes(*values):
    return torch.tensor(values).view(-1, 1, 1, 1).expand(-1, 3, 2, 2).clone()


def test_gives_what_it_gets_until_it_is_full():
    pool = ImagePool(4)
    for first in (0.0, 2.0):
        batch = fakes(first, first + 1)
        assert torch.equal(pool(batch), batch)
    assert pool.pictures[:, 0, 0, 0].tolist() == [0, 1, 2, 3]


def test_half_of_the_time_an_older_one_whose_place_the_new_one_takes():
    pool, older = ImagePool(50), 0
    for i in range(50):
        pool(fakes(float(i)))
    held = set(range(50))
    for i in range(50, 2050):
        given = int(pool(fakes(float(i))).flatten()[0])
        if given != i:
            older += 1
            assert given in held
            held = held - {given} | {i}
    assert set(pool.pictures[:, 0, 0, 0].int().tolist()) == held
    assert 900 < older < 1100  # 1000 ± 4.5 standard deviations of 22


def test_a_pool_of_none_gives_all_back_without_a_gradient():
    given = ImagePool(0)(fakes(1.0).requires_grad_())
    assert torch.equal(given, fakes(1.0))
    assert not given.requires_grad


def test_no_gradient_flows_through():
    batch = fakes(1.0, 2.0).requires_grad_()
    pool = ImagePool(2)
    assert not pool(batch).requires_grad
    assert not pool(batch).requires_grad
    assert not pool.pictures.requires_grad


def test_its_pictures_are_in_the_state():
    pool, other = ImagePool(3), ImagePool(3)
    pool(fakes(1.0, 2.0))
    other.load_state_dict(pool.state_dict())
    assert torch.equal(other.pictures, pool.pictures)
    torch.manual_seed(1)
    a = [pool(fakes(float(i))) for i in range(9)]
    torch.manual_seed(1)
    b = [other(fakes(float(i))) for i in range(9)]
    assert torch.equal(torch.cat(a), torch.cat(b))
